//! Channels share connections.

use cenote_amqp::Lease;
use cenote_amqp::lapin::BasicProperties;

use crate::{LIMIT, broker, builder, eventually, works};

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_carries_so_many_channels_and_the_server_counts_the_same() {
    let broker = broker::shared();
    let (name, builder) = broker.builder(7);
    let pool = builder.channels_per_connection(3).build().unwrap();
    let mut channels: Vec<Lease> = Vec::new();
    for _ in 0..7 {
        channels.push(pool.acquire().await.unwrap());
    }

    let mut counts: Vec<_> = broker
        .connections(&name)
        .into_iter()
        .map(|it| it.1)
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 3, 3]);
    assert_eq!(pool.connections().status().in_use, 3);
    for holder in pool.connections().leases() {
        let label = format!("pool `{}`", pool.name());
        assert_eq!(holder.label.as_deref(), Some(&*label));
    }
    drop(channels);
    assert!(pool.close_within(LIMIT).await.is_empty());
    assert!(pool.connections().close_within(LIMIT).await.is_empty());
    assert!(broker.connections(&name).is_empty(), "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_invalidated_end_with_their_channels() {
    let pool = builder(4).channels_per_connection(2).build().unwrap();
    let held = pool.acquire().await.unwrap();
    drop((pool.acquire().await.unwrap(), pool.acquire().await.unwrap()));

    pool.connections().invalidate();

    assert!(works(&held).await, "no lease is taken away");
    let next = pool.acquire().await.unwrap();
    assert!(works(&next).await);
    drop(held);
    let closed = || pool.connections().status().closes.total();
    eventually("both are closed", async || closed() == 2).await;
    assert_eq!(pool.connections().status().in_use, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_without_a_connection_says_who_has_them() {
    let pool = builder(2).channels_per_connection(1);
    let pool = pool.customize_connections(|connections| connections.max_size(1));
    let pool = pool.acquire_timeout(std::time::Duration::from_secs(1));
    let pool = pool.name("orders").build().unwrap();
    let direct = pool.connections().acquire().await.unwrap();
    cenote::Lease::label(&direct, "an administrator");

    let error = pool.acquire().await.unwrap_err().to_string();

    assert!(error.contains("pool `orders (connections)`"), "{error}");
    assert!(error.contains("an administrator"), "{error}");
    drop(direct);
    assert!(works(&pool.acquire().await.unwrap()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_channels_than_the_server_allows_is_an_error_that_names_the_setting() {
    let pool = builder(1).channels_per_connection(60_000).build().unwrap();

    let error = pool.acquire().await.unwrap_err().to_string();

    assert!(error.contains("lower `channels_per_connection`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_publish_over_few_channels() {
    let pool = builder(4).confirms(true).channels_per_connection(2);
    let pool = pool.build().unwrap();
    let keeper = pool.acquire().await.unwrap();
    let queue = crate::queue(&keeper).await;
    drop(keeper);
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let (pool, queue) = (pool.clone(), queue.clone());
            tokio::spawn(async move {
                for _ in 0..5 {
                    let channel = pool.acquire().await.unwrap();
                    let properties = BasicProperties::default();
                    channel
                        .publish("", queue.clone(), b"x", properties)
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }

    let channel = pool.acquire().await.unwrap();
    let purged = channel
        .queue_purge(queue, Default::default())
        .await
        .unwrap();

    assert_eq!(purged, 200);
    assert!(pool.status().opened <= 4 && pool.connections().status().opened <= 2);
    assert_eq!(pool.status().closes.total(), 0);
}
