//! Load while connections are lost: every caller is served again, and nothing is left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote_amqp::lapin::BasicProperties;
use cenote_amqp::lapin::options::BasicQosOptions;
use cenote_testkit::Proxy;
use tokio::time::{sleep, timeout};

use crate::{LIMIT, broker, eventually, works};

#[tokio::test(flavor = "multi_thread")]
async fn load_with_lost_connections_leaks_no_channel_and_no_connection() {
    let broker = broker::shared();
    let proxy = Proxy::to_url(broker.server.url()).await.unwrap();
    let (name, _) = broker.builder(1);
    let properties = cenote_amqp::lapin::ConnectionProperties::default();
    let properties = properties.with_connection_name(name.clone().into());
    let pool = crate::builder_at(&proxy.url(broker.server.url()), 8)
        .channels_per_connection(3)
        .confirms(true)
        .properties(properties)
        .build()
        .unwrap();
    let published = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..12)
        .map(|nth| tokio::spawn(publish(pool.clone(), nth, Arc::clone(&published))))
        .collect();
    for _ in 0..5 {
        let before = published.load(Ordering::Relaxed);
        eventually("messages go on", async || {
            published.load(Ordering::Relaxed) > before + 20
        })
        .await;
        proxy.reset();
    }
    for task in tasks {
        task.abort();
        let _ = task.await;
    }

    eventually("it recovers", async || match pool.acquire().await {
        Ok(channel) => works(&channel).await,
        Err(_) => false,
    })
    .await;
    let status = pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:?}");
    assert!(pool.close_within(LIMIT).await.is_empty());
    assert!(pool.connections().close_within(LIMIT).await.is_empty());
    eventually("the server has none", async || {
        broker.connections(&name).is_empty()
    })
    .await;
}

/// Publishes for ever. Some channels are used in other ways, and some futures are dropped midway.
async fn publish(pool: cenote_amqp::Pool, nth: usize, published: Arc<AtomicUsize>) {
    for round in nth.. {
        let Ok(channel) = pool.acquire().await else {
            sleep(Duration::from_millis(5)).await;
            continue;
        };
        if round % 11 == 0 {
            let _ = channel.basic_qos(1, BasicQosOptions::default()).await;
        }
        let sent = channel.publish("amq.fanout", "", b"x", BasicProperties::default());
        let limit = match round % 13 {
            0 => Duration::from_micros(50),
            _ => LIMIT,
        };
        if timeout(limit, sent).await.is_ok() {
            published.fetch_add(1, Ordering::Relaxed);
        }
    }
}
