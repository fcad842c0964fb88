//! A server that is killed and restarted.

use std::time::Duration;

use crate::broker::Broker;
use crate::{LIMIT, eventually, works};

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_survives_a_restart_of_its_server_and_leaves_nothing_behind() {
    let mut broker = Broker::start();
    let (name, builder) = broker.builder(6);
    let pool = builder.channels_per_connection(2);
    let pool = pool
        .acquire_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(pool.acquire().await.unwrap());
    }
    held.truncate(2);

    broker.server.kill().unwrap();
    eventually("the client knows", async || !held[0].status().connected()).await;
    let error = pool.acquire().await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    drop(held);
    broker.server.restart().unwrap();

    eventually("it recovers", async || match pool.acquire().await {
        Ok(channel) => works(&channel).await,
        Err(_) => false,
    })
    .await;
    assert!(pool.close_within(LIMIT).await.is_empty());
    assert!(pool.connections().close_within(LIMIT).await.is_empty());
    assert!(broker.connections(&name).is_empty());
}
