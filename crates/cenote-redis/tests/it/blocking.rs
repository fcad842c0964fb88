//! Blocking commands.

use std::time::Duration;

use cenote_redis::Lease;
use cenote_testkit::conformance::cut;
use redis::{AsyncCommands, cmd};
use tokio::time::{sleep, timeout};

use crate::admin::Admin;
use crate::{LIMIT, builder, eventually, id};

/// The default of the crate `redis` would end it after 500 ms.
#[tokio::test]
async fn a_blocking_command_has_no_limit_but_its_own() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server)
        .response_timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let on_lease = tokio::spawn(async move {
        let popped: (String, String) = lease.blpop("leased", 0.0).await.unwrap();
        popped.1
    });
    let on_handle = tokio::spawn(async move {
        let popped: (String, String) = pool.blpop("handled", 0.0).await.unwrap();
        popped.1
    });
    admin.sees(2, "blpop").await;

    sleep(Duration::from_millis(700)).await;
    let () = admin.say("RPUSH leased one").await;
    let () = admin.say("RPUSH handled two").await;

    assert_eq!(on_lease.await.unwrap(), "one");
    assert_eq!(on_handle.await.unwrap(), "two");
}

#[tokio::test]
async fn a_blocking_command_on_the_handle_blocks_no_other() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).mux(1).build().unwrap();
    let mut waiter = pool.clone();
    let popped = tokio::spawn(async move {
        let popped: (String, String) = waiter.blpop("jobs", 0.0).await.unwrap();
        popped.1
    });
    admin.sees(1, "blpop").await;
    assert_eq!(pool.pool().leases()[0].label.as_deref(), Some("BLPOP"));

    let mut other = pool.clone();
    let () = other.rpush("jobs", "first").await.unwrap();

    assert_eq!(popped.await.unwrap(), "first");
    eventually("the lease went back", async || {
        pool.pool().leases().len() == 1
    })
    .await;
}

/// An element that the server hands to a caller that is gone would be lost.
#[tokio::test]
async fn a_dropped_pop_takes_no_element_and_its_connection_is_not_lent_again() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).max_size(1).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;
    let pop = tokio::spawn(async move {
        let _: (String, String) = lease.blpop("jobs", 0.0).await.unwrap();
    });
    admin.sees(1, "blpop").await;

    pop.abort();

    admin.sees(0, "blpop").await;
    let () = admin.say("RPUSH jobs kept").await;
    let length: usize = admin.say("LLEN jobs").await;
    assert_eq!(length, 1);
    let mut next = pool.acquire().await.unwrap();
    assert_ne!(id(&mut next).await, first);
}

#[tokio::test]
async fn a_lease_whose_pop_was_dropped_says_so_at_once() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut lease = builder(&server).build().unwrap().acquire().await.unwrap();
    let pop = cut(1, lease.blpop::<_, (String, String)>("jobs", 0.0)).await;
    assert!(pop.is_none());

    let error = timeout(LIMIT, lease.get::<_, Option<String>>("k"))
        .await
        .unwrap()
        .unwrap_err();

    assert!(error.is_connection_dropped(), "{error}");
    admin.sees(0, "blpop").await;
}

#[tokio::test]
async fn streams_are_read_with_patience() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server)
        .response_timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    let read = tokio::spawn(async move {
        let mut read = cmd("XREAD");
        read.arg("BLOCK").arg(0).arg("STREAMS").arg("s").arg("$");
        read.query_async::<redis::Value>(&mut pool).await
    });
    admin.sees(1, "xread").await;

    sleep(Duration::from_millis(500)).await;
    let _: String = admin.say("XADD s * field value").await;

    assert!(matches!(
        read.await.unwrap().unwrap(),
        redis::Value::Array(_)
    ));
}

#[tokio::test]
async fn waiting_for_replicas_needs_the_connection_of_the_writes() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).build().unwrap();
    let wait = cmd("WAIT").arg(0).arg(0).to_owned();

    let error = wait.exec_async(&mut pool).await.unwrap_err();
    assert!(error.to_string().contains("acquire a lease"), "{error}");

    let mut lease = pool.acquire().await.unwrap();
    let () = lease.set("k", "v").await.unwrap();
    let replicas: usize = wait.query_async(&mut lease).await.unwrap();
    assert_eq!(replicas, 0);
    Lease::discard(lease);
}
