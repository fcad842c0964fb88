//! Futures that are dropped at every await.

use cenote::CloseReason;
use cenote_amqp::lapin::BasicProperties;
use cenote_amqp::lapin::options::QueueDeclareOptions;
use cenote_amqp::lapin::types::FieldTable;
use cenote_testkit::cut;

use crate::{LIMIT, broker, builder, eventually, queue, works};

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_may_be_dropped_at_every_await() {
    let broker = broker::shared();
    let (name, builder) = broker.builder(2);
    let pool = builder.confirms(true).build().unwrap();
    for polls in 0..6 {
        for _ in 0..5 {
            drop(cut(polls, pool.acquire()).await);
        }
        if polls % 2 == 0 {
            pool.connections().invalidate();
        }
    }

    let both = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());

    assert!(works(&both.0).await && works(&both.1).await);
    drop(both);
    assert!(pool.close_within(LIMIT).await.is_empty());
    assert!(pool.connections().close_within(LIMIT).await.is_empty());
    assert!(broker.connections(&name).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_midway_closes_its_channel_and_hits_no_other_user() {
    let pool = builder(1).confirms(true).build().unwrap();
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let mut cuts = 0;
    for round in 1..=10 {
        let channel = pool.acquire().await.unwrap();
        let name = "cenote-no-such-queue".into();
        let declared = channel.queue_declare(name, passive, FieldTable::default());
        // If this thread has to wait for a processor in the middle of the poll, the server's error
        // is here first. It closes the channel, too.
        cuts += u64::from(cut(1, declared).await.is_none());
        drop(channel);

        let next = pool.acquire().await.unwrap();
        assert!(works(&next).await, "the error of another user");
        drop(next);
        let closes = pool.status().closes;
        let refused = closes.by(CloseReason::Refused);
        assert_eq!((closes.total(), refused), (round, cuts));
    }
    assert!(cuts > 0, "the server takes its time");
    assert_eq!(pool.connections().status().opened, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_may_be_dropped_at_every_await() {
    let pool = builder(1).confirms(true).build().unwrap();
    let channel = pool.acquire().await.unwrap();
    let queue = queue(&channel).await;
    drop(channel);
    for polls in 0..6 {
        let channel = pool.acquire().await.unwrap();
        let publish = channel.publish("", queue.clone(), b"x", BasicProperties::default());
        let published = cut(polls, publish).await;
        drop(channel);
        let next = pool.acquire().await.unwrap();
        assert!(works(&next).await, "after {polls} polls, {published:?}");
    }

    eventually("it is idle", async || pool.status().idle == 1).await;
}
