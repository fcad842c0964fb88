//! What the errors of a real server mean.

use cenote::error::ErrorClass;
use cenote::{AcquireError, Manager, OpenError};
use cenote_redis::{Class, Credentials, Pool, classify};
use cenote_servers::Server;
use redis::{AsyncCommands, RedisError, cmd};

use crate::admin::Admin;
use crate::{builder, patient};

/// Returns the class of an open that fails, for a lease and for a lane, and what the breaker is
/// told.
async fn refused_open(mut pool: Pool) -> (Class, Class, ErrorClass) {
    let error = pool.acquire().await.unwrap_err();
    let AcquireError::Open {
        error: OpenError::Failed(cause),
        ..
    } = &error
    else {
        panic!("{error}")
    };
    let told = pool.pool().manager().classify(cause);
    let on_lease = classify(cause);
    let on_lane = classify(&pool.get::<_, Option<String>>("k").await.unwrap_err());
    (on_lease, on_lane, told)
}

async fn failed(pool: &mut Pool, text: &str) -> RedisError {
    let mut words = text.split(' ');
    let mut command = cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command.exec_async(pool).await.unwrap_err()
}

fn with_password(server: &Server, user_info: &str) -> String {
    server
        .url()
        .replace("redis://", &format!("redis://{user_info}@"))
}

const DENIED: (Class, Class, ErrorClass) = (Class::Denied, Class::Denied, ErrorClass::Denied);

#[tokio::test]
async fn a_wrong_password_is_denied() {
    let server = cenote_servers::redis::start_with(&[("requirepass", "right-word")]).unwrap();
    for parameters in ["", "?protocol=resp3"] {
        let url = with_password(&server, ":wrong-word") + parameters;

        let refused = refused_open(patient(&url).build().unwrap()).await;

        assert_eq!(refused, DENIED, "{parameters}");
    }
    let mut pool = patient(&with_password(&server, ":right-word"))
        .build()
        .unwrap();
    cmd("PING").exec_async(&mut pool).await.unwrap();
}

#[tokio::test]
async fn a_missing_password_is_denied() {
    let server = cenote_servers::redis::start_with(&[("requirepass", "right-word")]).unwrap();
    let mut pool = builder(&server).build().unwrap();

    let error = failed(&mut pool, "GET k").await;

    assert_eq!(classify(&error), Class::Denied, "{error}");
}

#[tokio::test]
async fn the_password_is_in_no_text() {
    let server = cenote_servers::redis::start_with(&[("requirepass", "right-word")]).unwrap();
    let url = with_password(&server, ":wrong-word");
    let builder = patient(&url);
    let mut texts = vec![format!("{builder:?}")];
    let mut pool = builder.build().unwrap();
    texts.push(format!("{pool:?} {:?}", pool.pool().manager()));
    let error = failed(&mut pool, "GET k").await;
    texts.push(format!("{error} {error:?}"));

    for text in texts {
        assert!(!text.contains("wrong-word"), "{text}");
    }
}

#[tokio::test]
async fn a_rotated_password_is_asked_for_at_each_open() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let () = admin
        .say("ACL SETUSER app on >first-word ~* &* +@all")
        .await;
    let word = std::sync::Arc::new(std::sync::Mutex::new("first-word"));
    let asked = std::sync::Arc::clone(&word);
    let pool = builder(&server).credentials(move || {
        let word = *asked.lock().unwrap();
        async move { Ok::<_, std::io::Error>(Credentials::new("app", word)) }
    });
    let mut pool = pool.build().unwrap();
    let user: String = cmd("ACL")
        .arg("WHOAMI")
        .query_async(&mut pool)
        .await
        .unwrap();
    assert_eq!(user, "app");

    let () = admin.say("ACL SETUSER app resetpass >second-word").await;
    *word.lock().unwrap() = "second-word";
    pool.invalidate();

    let user: String = cmd("ACL")
        .arg("WHOAMI")
        .query_async(&mut pool)
        .await
        .unwrap();
    assert_eq!(user, "app");
}

#[tokio::test]
async fn a_missing_permission_is_denied_and_the_connection_is_good() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let () = admin
        .say("ACL SETUSER reader on >word ~* &* +@read +@connection")
        .await;
    let mut pool = patient(&with_password(&server, "reader:word"))
        .build()
        .unwrap();

    let error = failed(&mut pool, "SET k v").await;

    assert_eq!(classify(&error), Class::Denied, "{error}");
    assert!(!classify(&error).is_retryable());
    let _: Option<String> = pool.get("k").await.unwrap();
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_denied() {
    let server = cenote_servers::redis::start().unwrap();
    let pool = patient(&format!("{}/99", server.url())).build().unwrap();

    assert_eq!(refused_open(pool).await, DENIED);
}

#[tokio::test]
async fn a_refused_connection_is_worth_another_try() {
    let mut server = cenote_servers::redis::start().unwrap();
    server.kill().unwrap();
    let pool = builder(&server).build().unwrap();

    let refused = refused_open(pool).await;

    assert_eq!(
        refused,
        (Class::Refused, Class::Refused, ErrorClass::Unreachable)
    );
}

#[tokio::test]
async fn too_many_clients_are_worth_another_try() {
    let server = cenote_servers::redis::start_with(&[("maxclients", "1")]).unwrap();
    let _only = Admin::of(server.url()).await;
    let mut pool = builder(&server).build().unwrap();

    let error = failed(&mut pool, "GET k").await;

    assert_eq!(classify(&error), Class::Refused, "{error}");
}

#[tokio::test]
async fn a_replica_without_its_master_is_worth_another_try() {
    let settings = [("replica-serve-stale-data", "no")];
    let server = cenote_servers::redis::start_with(&settings).unwrap();
    let mut admin = Admin::of(server.url()).await;
    let () = admin.say("REPLICAOF 127.0.0.1 1").await;
    let mut pool = builder(&server).build().unwrap();

    let error = failed(&mut pool, "GET k").await;

    assert_eq!(error.code(), Some("MASTERDOWN"));
    assert_eq!(classify(&error), Class::Refused);
}

#[tokio::test]
async fn a_cluster_without_slots_is_worth_another_try() {
    let settings = [("cluster-enabled", "yes")];
    let server = cenote_servers::redis::start_with(&settings).unwrap();
    let mut pool = builder(&server).build().unwrap();

    let error = failed(&mut pool, "GET k").await;

    assert_eq!(error.code(), Some("CLUSTERDOWN"));
    assert_eq!(classify(&error), Class::Refused);
}

#[tokio::test]
async fn a_server_without_memory_is_worth_another_try() {
    let server = cenote_servers::redis::start_with(&[("maxmemory", "1")]).unwrap();
    let mut pool = builder(&server).build().unwrap();

    let error = failed(&mut pool, "SET k v").await;

    assert_eq!(error.code(), Some("OOM"));
    assert_eq!(classify(&error), Class::Refused);
}

#[tokio::test]
async fn a_wrong_command_is_wrong_for_good() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();

    for text in ["LPUSH k v", "NOSUCH", "INCR k", "EVALSHA x 0"] {
        let error = failed(&mut pool, text).await;
        assert_eq!(classify(&error), Class::Command, "{text}: {error}");
    }
    assert_eq!(pool.status().opened, 1, "the connection is good");
}
