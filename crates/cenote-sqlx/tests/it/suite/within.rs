//! A handle with a time limit of its own.

use std::time::Duration;

use cenote_sqlx::is_timeout;
use cenote_testkit::clock::timed;
use futures_util::future::join_all;

use super::{Rig, number};

/// Much shorter than the `acquire_timeout` of the rig.
const LIMIT: Duration = Duration::from_millis(60);
const MUCH: Duration = Duration::from_secs(8);

#[tokio::test]
async fn calls_through_a_hurried_handle_wait_no_longer_than_its_limit() {
    let rig = Rig::new("within").await;
    let hurried = rig.db.within(LIMIT);
    let held = join_all((0..4).map(|_| rig.db.acquire())).await;
    // The writer of SQLite has a connection of its own.
    let writing = match rig.db.pool().annex() {
        Some(writer) => Some(writer.acquire().await.unwrap()),
        None => None,
    };

    for call in 0..4 {
        let waits = async {
            match call {
                0 => number(&hurried, "SELECT 1").await.map(drop),
                1 => rig.insert_on(&hurried, 1).await,
                2 => hurried.begin().await.map(drop),
                _ => hurried.acquire().await.map(drop),
            }
        };
        let (ended, took) = timed(waits).await;

        let error = ended.unwrap_err();
        assert!(is_timeout(&error), "call {call}: {error}");
        assert!(took >= LIMIT && took < MUCH, "call {call}: {took:?}");
    }
    drop((held, writing));
    rig.insert_on(&hurried, 1).await.unwrap();
    assert_eq!(rig.ids().await, [1]);
}

#[tokio::test]
async fn a_hurried_handle_is_part_of_the_transaction_of_its_caller() {
    let rig = Rig::with("within_inside", |builder| builder.max_size(1)).await;
    let hurried = rig.db.within(LIMIT);

    let rolled_back = rig.db.transaction(async || {
        assert!(hurried.in_transaction());
        rig.insert_on(&hurried, 1).await?;
        hurried
            .transaction(async || rig.insert_on(&hurried, 2).await)
            .await?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(matches!(rolled_back.await, Err(sqlx::Error::RowNotFound)));
    assert_eq!(rig.ids().await, [0; 0]);
}
