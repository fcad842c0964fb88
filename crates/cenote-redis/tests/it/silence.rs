//! A network that falls silent.

use std::time::Duration;

use cenote_redis::{Class, classify};
use cenote_testkit::{Proxy, Way};
use redis::AsyncCommands;
use tokio::time::timeout;

use crate::{LIMIT, eventually, id, patient};

/// Longer than a healthy answer takes, also on a busy machine.
const SHORT: Duration = Duration::from_secs(3);

#[tokio::test]
async fn commands_into_silence_end_by_the_response_timeout_and_the_pool_recovers() {
    let server = cenote_servers::redis::start().unwrap();
    let proxy = Proxy::to(server.addr()).await.unwrap();
    let pool = patient(&proxy.url(server.url()))
        .mux(1)
        .response_timeout(SHORT);
    let pool = pool.clean_timeout(SHORT).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let (mut handle, first) = (pool.clone(), id(&mut lease).await);
    let () = handle.set("k", "v").await.unwrap();

    proxy.freeze(Way::Both);
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { pool.get::<_, String>("k").await })
        })
        .collect();
    let on_lease = timeout(LIMIT, lease.get::<_, String>("k")).await.unwrap();
    drop(lease);

    assert_eq!(classify(&on_lease.unwrap_err()), Class::Broken);
    for caller in callers {
        // A caller that came late has the next lane, which is not frozen.
        let value = timeout(LIMIT, caller).await.unwrap().unwrap();
        assert!(value.is_ok() || classify(&value.unwrap_err()) == Class::Broken);
    }
    eventually("lanes work", async || {
        handle.get::<_, String>("k").await.is_ok()
    })
    .await;
    let mut next = pool.acquire().await.unwrap();
    assert_ne!(
        id(&mut next).await,
        first,
        "a silent connection is not cleaned, but closed"
    );
}

#[tokio::test]
async fn an_idle_connection_into_silence_fails_its_check() {
    let server = cenote_servers::redis::start().unwrap();
    let proxy = Proxy::to(server.addr()).await.unwrap();
    let pool = patient(&proxy.url(server.url()))
        .max_size(1)
        .check_after_idle(Duration::ZERO);
    let pool = pool.check_timeout(SHORT).build().unwrap();
    let first = id(&mut pool.acquire().await.unwrap()).await;

    proxy.freeze(Way::Both);

    let mut next = timeout(LIMIT, pool.acquire()).await.unwrap().unwrap();
    assert_ne!(id(&mut next).await, first);
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_a_timeout_of_the_open() {
    let server = cenote_servers::redis::start().unwrap();
    let proxy = Proxy::to(server.addr()).await.unwrap();
    proxy.black_hole();
    let url = proxy
        .url(server.url())
        .replace("redis://", "redis://:word@");
    let mut pool = patient(&url).mux(1).open_timeout(SHORT).build().unwrap();

    let on_lane = timeout(LIMIT, pool.get::<_, Option<String>>("k"))
        .await
        .unwrap();
    let on_lease = timeout(LIMIT, pool.acquire()).await.unwrap();

    let text = on_lane.unwrap_err().to_string();
    assert!(text.contains("open_timeout"), "{text}");
    assert!(on_lease.unwrap_err().to_string().contains("open_timeout"));
}
