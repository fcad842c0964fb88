//! Connections that are killed, and servers that restart or are down.

use std::time::Duration;

use cenote::error::{AcquireError, ErrorClass};
use cenote::{Manager, Pool};
use cenote_diesel::Diesel;
use cenote_diesel::diesel_async::{AsyncMysqlConnection, AsyncPgConnection, SimpleAsyncConnection};

use crate::world::mysql::session;
use crate::world::postgres::backend;
use crate::world::{My, Pg, World};
use crate::{LIMIT, eventually, next};

/// The driver knows when the connection ends.
#[tokio::test]
async fn an_idle_connection_that_postgres_ends_is_not_lent() {
    let world = Pg::new("pg_idle_killed").await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let id = backend(&mut lease).await;
    drop(lease);

    world.admin().await.kill(id).await;
    // The end reaches this process a moment after the server's process is gone.
    eventually("a good connection is lent", async || {
        let mut lease = pool.acquire().await.unwrap();
        lease.batch_execute("select 1").await.is_ok()
    })
    .await;

    let mut lease = pool.acquire().await.unwrap();
    assert_ne!(backend(&mut lease).await, id);
}

/// The driver does not know. The check does.
#[tokio::test]
async fn an_idle_connection_that_mysql_ends_fails_its_check() {
    let world = My::new("my_idle_killed").await;
    let pool = Pool::builder(world.manager()).max_size(1);
    let pool = pool.check_after_idle(Duration::ZERO).acquire_timeout(LIMIT);
    let pool = pool.build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let id = session(&mut lease).await;
    drop(lease);

    world.admin().await.kill(id).await;

    let mut lease = pool.acquire().await.unwrap();
    assert_ne!(session(&mut lease).await, id);
}

#[tokio::test]
async fn a_connection_that_postgres_ends_in_use_is_not_lent_again() {
    let world = Pg::new("pg_used_killed").await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let id = backend(&mut lease).await;
    lease.batch_execute("begin").await.unwrap();

    world.admin().await.kill(id).await;
    assert!(
        lease
            .batch_execute("insert into t values (1)")
            .await
            .is_err()
    );
    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(Pg::echo(&mut lease, 7).await, 7);
    assert!(world.rows().await.is_empty());
}

#[tokio::test]
async fn a_connection_that_mysql_ends_in_use_is_not_lent_again() {
    let world = My::new("my_used_killed").await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let id = session(&mut lease).await;
    lease.batch_execute("begin").await.unwrap();

    world.admin().await.kill(id).await;
    assert!(
        lease
            .batch_execute("insert into t values (1)")
            .await
            .is_err()
    );
    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(My::echo(&mut lease, 7).await, 7);
    assert!(world.rows().await.is_empty());
}

/// The server ends the statement with an error, and then the session.
#[tokio::test]
async fn a_connection_that_mysql_ends_in_a_statement_is_not_lent_again() {
    let world = My::new("my_statement_killed").await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let id = session(&mut lease).await;

    let slow = tokio::spawn(async move {
        let ended = lease.batch_execute("select sleep(60)").await;
        (lease, ended)
    });
    eventually("it runs", async || world.sessions().await.1 == 1).await;
    world.admin().await.kill(id).await;
    let (lease, ended) = slow.await.unwrap();
    assert!(ended.is_err());
    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(My::echo(&mut lease, 7).await, 7);
}

#[tokio::test]
async fn the_pool_survives_a_restart_of_postgres() {
    let mut server = cenote_servers::postgres::start().unwrap();
    let world = Pg::at(server.url(), "restarted").await;
    let pool = world.pool(3);
    let leases = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    drop(leases);

    server.restart().unwrap();

    eventually("it works", async || {
        let Ok(mut lease) = pool.acquire().await else {
            return false;
        };
        lease
            .batch_execute("insert into t values (1)")
            .await
            .is_ok()
    })
    .await;
    assert_eq!(world.rows().await, [1]);
}

#[tokio::test]
async fn the_pool_survives_a_restart_of_mysql() {
    let mut server = cenote_servers::mariadb::start().unwrap();
    let world = My::at(server.url(), "restarted").await;
    let pool = world.pool(3);
    let leases = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    drop(leases);

    server.restart().unwrap();

    eventually("it works", async || {
        let Ok(mut lease) = pool.acquire().await else {
            return false;
        };
        lease
            .batch_execute("insert into t values (1)")
            .await
            .is_ok()
    })
    .await;
    assert_eq!(world.rows().await, [1]);
}

async fn is_unreachable<M: Manager<Error = cenote_diesel::Error>>(manager: M) -> bool {
    let Err(error) = manager.open().await else {
        return false;
    };
    assert!(!error.to_string().contains("secret"), "{error}");
    manager.classify(&error) == ErrorClass::Unreachable
}

#[tokio::test]
async fn a_server_that_is_down_is_unreachable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let url = format!("postgres://app:secret@{address}/shop");
    let postgres = Diesel::<AsyncPgConnection>::new(url);
    let url = format!("mysql://app:secret@{address}/shop?prefer_socket=false");
    let mysql = Diesel::<AsyncMysqlConnection>::new(url);
    assert!(!format!("{postgres:?} {mysql:?}").contains("secret"));

    assert!(is_unreachable(postgres).await);
    assert!(is_unreachable(mysql).await);
}

#[tokio::test]
async fn a_failed_open_is_told_to_the_caller() {
    let manager = Diesel::<AsyncPgConnection>::new("this is no URL");
    let pool = crate::pool(manager, 1);

    let failed = pool.acquire().await.err();

    assert!(
        matches!(failed, Some(AcquireError::Open { .. })),
        "{failed:?}"
    );
}
