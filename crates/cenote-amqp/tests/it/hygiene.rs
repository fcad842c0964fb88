//! Nothing of one user reaches the next one.

use cenote::CloseReason;
use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote_amqp::lapin::options::{
    BasicConsumeOptions, BasicGetOptions, BasicQosOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use cenote_amqp::lapin::types::FieldTable;
use cenote_amqp::lapin::{self, BasicProperties};
use cenote_amqp::{Lease, Pool};

use crate::{builder, eventually, queue, take, works};

/// Waits until the channel of the last user is closed.
async fn is_closed(pool: &Pool, reason: CloseReason) {
    let closes = || pool.status().closes.by(reason);
    eventually("its channel is closed", async || {
        closes() == 1 && pool.status().closing == 0
    })
    .await;
    assert_eq!(pool.connections().status().closes.total(), 0);
}

/// A use that leaves something behind on its channel.
async fn leave(channel: &Lease, what: &str) {
    let queue = queue(channel).await;
    match what {
        "qos" => {
            let qos = channel.basic_qos(1, BasicQosOptions::default());
            qos.await.unwrap();
        }
        "confirms" => {
            let select = channel.confirm_select(ConfirmSelectOptions::default());
            select.await.unwrap();
        }
        "transaction" => {
            channel.tx_select().await.unwrap();
            let publish = channel.publish("", queue, b"", BasicProperties::default());
            publish.await.unwrap();
        }
        "consumer" => {
            let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
            let consumer = channel.basic_consume(queue, "".into(), options, arguments);
            drop(consumer.await.unwrap());
        }
        "closed by hand" => channel.close(200, "".into()).await.unwrap(),
        "clone" => {
            let driver: &lapin::Channel = channel;
            drop(driver.clone());
        }
        _ => panic!("unknown: {what}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_may_be_dirty_is_closed_and_not_reused() {
    for what in [
        "qos",
        "confirms",
        "transaction",
        "consumer",
        "closed by hand",
        "clone",
    ] {
        let pool = builder(1).build().unwrap();
        let channel = pool.acquire().await.unwrap();
        leave(&channel, what).await;
        drop(channel);
        is_closed(&pool, CloseReason::Refused).await;

        let next = pool.acquire().await.unwrap();

        assert!(works(&next).await && !next.status().confirm(), "{what}");
        assert!(next.tx_select().await.is_ok(), "{what}");
        assert_eq!(pool.connections().status().opened, 1, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_was_not_acknowledged_goes_back_to_its_queue() {
    let pool = builder(2).confirms(true).build().unwrap();
    let keeper = pool.acquire().await.unwrap();
    let queue = queue(&keeper).await;
    let publish = keeper.publish("", queue.clone(), b"job", BasicProperties::default());
    publish.await.unwrap();
    let channel = pool.acquire().await.unwrap();
    let got = channel.basic_get(queue.clone(), BasicGetOptions::default());
    assert!(got.await.unwrap().is_some());

    drop(channel);
    is_closed(&pool, CloseReason::Refused).await;

    assert_eq!(take(&pool, &queue).await.unwrap(), b"job");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soft_error_costs_one_channel_and_no_connection() {
    let pool = builder(2).customize(|pool| pool.breaker(ConsecutiveFailures::new(1)));
    let pool = pool.build().unwrap();
    let other = pool.acquire().await.unwrap();
    let channel = pool.acquire().await.unwrap();
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };

    let name = "cenote-no-such-queue".into();
    let declared = channel.queue_declare(name, passive, FieldTable::default());

    let error = declared.await.unwrap_err();
    assert!(error.is_amqp_soft_error(), "{error}");
    assert!(works(&other).await, "the connection goes on");
    drop(channel);
    is_closed(&pool, CloseReason::Refused).await;
    assert!(works(&pool.acquire().await.unwrap()).await);
    assert_eq!(pool.breaker().state(), BreakerState::Active, "no failure");
}
