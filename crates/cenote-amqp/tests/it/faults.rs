//! Connections that are lost, and a server that falls silent.

use std::time::Duration;

use cenote_amqp::lapin::BasicProperties;
use cenote_amqp::lapin::options::BasicPublishOptions;
use cenote_testkit::{Proxy, Way};

use crate::{LIMIT, broker, builder, builder_at, eventually, url, works};

#[tokio::test(flavor = "multi_thread")]
async fn a_hard_error_ends_the_connection_with_all_its_channels_and_the_pool_recovers() {
    let pool = builder(3).build().unwrap();
    let (channel, other) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());
    // The server does not know `immediate`, and such an error ends the whole connection.
    let options = BasicPublishOptions {
        immediate: true,
        ..BasicPublishOptions::default()
    };
    let properties = BasicProperties::default();
    let publish = channel.basic_publish("".into(), "".into(), options, b"", properties);
    drop(publish.await);
    eventually("both are gone", async || {
        !channel.status().connected() && !other.status().connected()
    })
    .await;

    drop((channel, other));

    assert!(works(&pool.acquire().await.unwrap()).await);
    assert_eq!(pool.connections().status().opened, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_an_administrator_closes_is_replaced() {
    let broker = broker::shared();
    let (name, builder) = broker.builder(3);
    let pool = builder.build().unwrap();
    let held = pool.acquire().await.unwrap();
    drop(pool.acquire().await.unwrap());

    broker.close(&name);
    eventually("the client knows", async || !held.status().connected()).await;

    assert!(
        works(&pool.acquire().await.unwrap()).await,
        "the idle one is not lent"
    );
    drop(held);
    let opened = || pool.connections().status().closes.total();
    eventually("the connection is closed", async || opened() == 1).await;
    assert!(pool.close_within(LIMIT).await.is_empty());
    assert!(pool.connections().close_within(LIMIT).await.is_empty());
    assert!(broker.connections(&name).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_holds_up_no_caller_for_longer_than_its_limit() {
    let proxy = Proxy::to_url(url()).await.unwrap();
    let short = Duration::from_secs(2);
    let pool = builder_at(&proxy.url(url()), 2)
        .check_after_idle(Duration::ZERO)
        .check_timeout(short)
        .clean_timeout(short)
        .close_timeout(short)
        .open_timeout(short)
        .acquire_timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    eventually("a channel is idle", async || pool.acquire().await.is_ok()).await;

    proxy.stall(Way::ToClient);
    assert!(pool.acquire().await.is_err());

    proxy.reset();
    proxy.heal().unwrap();
    eventually("it recovers", async || match pool.acquire().await {
        Ok(channel) => works(&channel).await,
        Err(_) => false,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_connection_is_noticed_before_its_channels_are_lent() {
    let proxy = Proxy::to_url(url()).await.unwrap();
    let pool = builder_at(&proxy.url(url()), 4).build().unwrap();
    let held = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());

    proxy.reset();
    eventually("the client knows", async || !held.0.status().connected()).await;

    let next = pool.acquire().await.unwrap();
    assert!(works(&next).await);
    drop(held);
    drop(next);
    assert!(pool.close_within(LIMIT).await.is_empty());
}
