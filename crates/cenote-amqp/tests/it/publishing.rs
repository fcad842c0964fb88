//! Publishing and consuming.

use cenote::CloseReason;
use cenote_amqp::Error;
use cenote_amqp::lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, QueueDeleteOptions,
};
use cenote_amqp::lapin::types::FieldTable;
use cenote_amqp::lapin::{BasicProperties, Confirmation};
use futures_util::StreamExt;

use crate::{builder, eventually, queue, take, works};

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_message_is_in_its_queue() {
    let pool = builder(2).confirms(true).build().unwrap();
    let channel = pool.acquire().await.unwrap();
    let queue = queue(&channel).await;

    let publish = channel.publish("", queue.clone(), b"hello", BasicProperties::default());
    publish.await.unwrap();

    assert_eq!(take(&pool, &queue).await.unwrap(), b"hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_no_queue_gets_is_an_error_in_a_pool_with_confirms() {
    let pool = builder(1).confirms(true).build().unwrap();
    let channel = pool.acquire().await.unwrap();

    let lost = channel.publish("", "cenote-nowhere", b"", BasicProperties::default());

    assert!(matches!(lost.await, Err(Error::Returned)));
    assert!(works(&channel).await, "the channel still works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_only_published_and_declared_is_lent_again() {
    for confirms in [true, false] {
        let pool = builder(1).confirms(confirms).build().unwrap();
        for _ in 0..20 {
            let channel = pool.acquire().await.unwrap();
            let queue = queue(&channel).await;
            let publish = channel.publish("", queue.clone(), b"", BasicProperties::default());
            publish.await.unwrap();
            let (options, properties) =
                (BasicPublishOptions::default(), BasicProperties::default());
            let name = queue.clone();
            let publish = channel.basic_publish("".into(), name, options, b"", properties);
            let confirmed = publish.await.unwrap().await.unwrap();
            assert_eq!(confirmed != Confirmation::NotRequested, confirms);
            let deleted = channel.queue_delete(queue, QueueDeleteOptions::default());
            deleted.await.unwrap();
        }

        eventually("it is idle", async || pool.status().idle == 1).await;
        assert_eq!((pool.status().opened, pool.status().closes.total()), (1, 0));
    }
}

/// The server tells of such an error only after the publish has returned.
#[tokio::test(flavor = "multi_thread")]
async fn a_publish_that_fails_later_does_not_hit_the_next_user() {
    for confirms in [true, false] {
        let pool = builder(1).confirms(confirms).build().unwrap();
        for _ in 0..20 {
            let channel = pool.acquire().await.unwrap();
            let (options, properties) =
                (BasicPublishOptions::default(), BasicProperties::default());
            let exchange = "cenote-no-such-exchange".into();
            let publish = channel.basic_publish(exchange, "".into(), options, b"", properties);
            drop(publish.await);
            drop(channel);

            let next = pool.acquire().await.unwrap();
            assert!(works(&next).await, "the error of another user");
        }
        assert_eq!(pool.connections().status().opened, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_consumes_is_held_for_long_under_a_label() {
    let pool = builder(2).confirms(true).leak_after(None).build().unwrap();
    let channel = pool.acquire().await.unwrap();
    let queue = queue(&channel).await;
    cenote::Lease::label(&channel, "consumer of jobs");
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let consumer = channel.basic_consume(queue.clone(), "".into(), options, arguments);
    let mut consumer = consumer.await.unwrap();
    let publisher = pool.acquire().await.unwrap();
    for message in [b"one", b"two"] {
        let publish = publisher.publish("", queue.clone(), message, BasicProperties::default());
        publish.await.unwrap();
    }

    for message in [b"one", b"two"] {
        let delivery = consumer.next().await.unwrap().unwrap();
        assert_eq!(delivery.data, message);
        delivery.ack(BasicAckOptions::default()).await.unwrap();
    }

    assert_eq!(pool.leases()[0].label.as_deref(), Some("consumer of jobs"));
    drop(channel);
    assert!(
        consumer.next().await.is_none_or(|next| next.is_err()),
        "it ends"
    );
    let closes = || pool.status().closes.by(CloseReason::Refused);
    eventually("its channel is closed", async || closes() == 1).await;
}
