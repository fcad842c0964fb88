//! The handle puts each command where it can run.

use cenote_redis::{Class, Pool, classify};
use redis::{AsyncCommands, cmd, pipe};

use crate::builder;

#[tokio::test]
async fn stateless_commands_and_atomic_pipelines_share_the_lanes() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).mux(1).build().unwrap();

    let () = pool.set("a", 1).await.unwrap();
    let (b, c): (u32, u32) = pipe()
        .incr("a", 1)
        .incr("a", 1)
        .query_async(&mut pool)
        .await
        .unwrap();
    let (d,): (u32,) = pipe()
        .atomic()
        .incr("a", 1)
        .query_async(&mut pool)
        .await
        .unwrap();

    assert_eq!((b, c, d), (2, 3, 4));
    assert_eq!(pool.status().opened, 1, "one lane, no lease");
    assert_eq!(pool.lanes(), [0]);
}

#[tokio::test]
async fn a_pipeline_that_undoes_its_changes_has_a_connection_of_its_own() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).mux(1).build().unwrap();
    let () = pool.set("k", "home").await.unwrap();

    let mut pipeline = pipe();
    pipeline.cmd("SELECT").arg(1).ignore();
    pipeline.set("k", "away").ignore().get("k");
    pipeline.cmd("SELECT").arg(0).ignore();
    let (away,): (String,) = pipeline.query_async(&mut pool).await.unwrap();

    let home: String = pool.get("k").await.unwrap();
    assert_eq!((away.as_str(), home.as_str()), ("away", "home"));
    assert_eq!(pool.status().opened, 2);
}

#[tokio::test]
async fn a_command_that_others_must_follow_is_refused_with_the_fix() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).build().unwrap();

    for (name, arg) in [
        ("WATCH", "k"),
        ("SELECT", "1"),
        ("AUTH", "x"),
        ("multi", ""),
    ] {
        let mut command = cmd(name);
        if !arg.is_empty() {
            command.arg(arg);
        }
        let error = command.exec_async(&mut pool).await.unwrap_err();

        let text = error.to_string();
        let named = text.contains(&format!("`{}`", name.to_uppercase()));
        assert!(
            named && text.contains("acquire a lease") && text.contains("cenote::scope"),
            "{text}"
        );
        assert_eq!(classify(&error), Class::Command);
    }
    let error = cmd("SUBSCRIBE")
        .arg("news")
        .exec_async(&mut pool)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("Lease::messages"), "{error}");
    assert_eq!(pool.status().opened, 0, "nothing was sent");
}

#[tokio::test]
async fn without_lanes_every_command_has_a_connection_of_its_own() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).mux(0).max_size(1).build().unwrap();

    let () = pool.set("k", "v").await.unwrap();
    let value: String = pool.get("k").await.unwrap();

    assert_eq!(value, "v");
    assert!(pool.lanes().is_empty());
    assert_eq!((pool.status().opened, pool.status().idle), (1, 1));
}

#[tokio::test]
async fn a_closed_pool_tells_everyone() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();

    let left = pool.close_within(crate::LIMIT).await;

    assert!(left.is_empty(), "{left:?}");
    assert!(pool.acquire().await.is_err());
    let error = pool.get::<_, Option<String>>("k").await.unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
}

#[tokio::test]
async fn a_dropped_handle_closes_its_connections() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = crate::admin::Admin::of(server.url()).await;
    let mut pool: Pool = builder(&server).mux(2).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    drop(pool.acquire().await.unwrap());

    drop(pool);

    crate::eventually("all are closed", async || admin.others().await.is_empty()).await;
}

#[tokio::test]
async fn a_warm_pool_has_connections_for_both() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).min_idle(2).build().unwrap();

    pool.warm().await.unwrap();

    assert_eq!(pool.status().opened, 3);
    let () = pool.set("k", "v").await.unwrap();
    assert_eq!(pool.status().opened, 3);
}
