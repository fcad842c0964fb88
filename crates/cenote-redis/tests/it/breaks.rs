//! Connections that the server ends.

use cenote::CloseReason;
use cenote_redis::{Class, classify};
use redis::AsyncCommands;
use tokio::time::timeout;

use crate::admin::Admin;
use crate::{LIMIT, builder, eventually, id};

/// No check is due, and no command was sent: the end of the connection is seen by itself.
#[tokio::test]
async fn an_idle_connection_that_was_killed_is_never_lent() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server)
        .max_size(1)
        .check_after_idle(None)
        .build()
        .unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;
    drop(lease);

    admin.kill(first).await;

    eventually(
        "the end is noticed, and the next lease is of another connection",
        async || {
            let mut lease = pool.acquire().await.unwrap();
            let own = redis::cmd("CLIENT")
                .arg("ID")
                .query_async::<u64>(&mut lease)
                .await;
            own.is_ok_and(|own| own != first)
        },
    )
    .await;
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn a_lease_whose_connection_was_killed_is_not_lent_again() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).max_size(1).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;
    admin.kill(first).await;

    let error = lease.get::<_, Option<String>>("k").await.unwrap_err();
    drop(lease);

    assert_eq!(classify(&error), Class::Broken);
    assert!(!classify(&error).is_retryable(), "a command may have run");
    let mut next = pool.acquire().await.unwrap();
    assert_ne!(id(&mut next).await, first);
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn all_waiters_are_told_when_their_lane_breaks_and_the_lane_is_opened_again() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).build().unwrap();
    let first = id(&mut pool).await;
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { pool.incr::<_, _, u64>("count", 1).await })
        })
        .collect();
    eventually("all are in flight", async || pool.lanes() == [100]).await;

    admin.kill(first).await;
    let mut told = 0;
    for caller in callers {
        let error = timeout(LIMIT, caller).await.unwrap().unwrap().unwrap_err();
        assert_eq!(classify(&error), Class::Broken, "{error}");
        told += 1;
    }

    assert_eq!(told, 100);
    let () = admin.say("CLIENT UNPAUSE").await;
    assert_ne!(id(&mut pool).await, first);
    assert_eq!(pool.lanes().iter().sum::<usize>(), 0);
}

#[tokio::test]
async fn a_server_that_became_a_replica_loses_its_connections() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).max_size(1).build().unwrap();
    let lane = id(&mut pool).await;
    let mut lease = pool.acquire().await.unwrap();
    let leased = id(&mut lease).await;
    let () = admin.say("REPLICAOF 127.0.0.1 1").await;

    let on_lane = pool.set::<_, _, ()>("k", "v").await.unwrap_err();
    let on_lease = lease.set::<_, _, ()>("k", "v").await.unwrap_err();
    drop(lease);

    for error in [on_lane, on_lease] {
        assert!(classify(&error).is_retryable(), "{error}");
    }
    assert_ne!(id(&mut pool).await, lane);
    assert_ne!(id(&mut pool.acquire().await.unwrap()).await, leased);
}
