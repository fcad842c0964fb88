//! Transactions that are passed along as arguments.

use cenote_mysql::mysql_async::IsolationLevel;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Class, TransactionOptions, classify};

use crate::rig::Rig;

const INSERT: &str = "INSERT INTO t VALUES (?, 0)";

#[tokio::test]
async fn a_commit_keeps_and_a_rollback_and_a_drop_undo() {
    let rig = Rig::with("ends", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;

    let mut kept = lease.transaction().await.unwrap();
    kept.exec_drop(INSERT, (1,)).await.unwrap();
    kept.commit().await.unwrap();
    let mut undone = lease.transaction().await.unwrap();
    undone.exec_drop(INSERT, (2,)).await.unwrap();
    undone.rollback().await.unwrap();
    let mut dropped = lease.transaction().await.unwrap();
    dropped.exec_drop(INSERT, (3,)).await.unwrap();
    drop(dropped);
    lease.exec_drop(INSERT, (4,)).await.unwrap();
    drop(lease);

    assert_eq!(rig.rows().await, [1, 4]);
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test]
async fn transactions_inside_are_savepoints() {
    let rig = Rig::with("nested", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;

    let mut outer = lease.transaction().await.unwrap();
    outer.exec_drop(INSERT, (1,)).await.unwrap();
    let mut kept = outer.transaction().await.unwrap();
    kept.exec_drop(INSERT, (2,)).await.unwrap();
    let mut dropped = kept.transaction().await.unwrap();
    dropped.exec_drop(INSERT, (3,)).await.unwrap();
    drop(dropped);
    kept.exec_drop(INSERT, (4,)).await.unwrap();
    kept.commit().await.unwrap();
    let mut undone = outer.transaction().await.unwrap();
    undone.exec_drop(INSERT, (5,)).await.unwrap();
    undone.rollback().await.unwrap();
    outer.commit().await.unwrap();

    assert_eq!(rig.rows().await, [1, 2, 4]);
}

#[tokio::test]
async fn a_transaction_that_was_forgotten_with_its_lease_is_rolled_back() {
    let rig = Rig::with("forgotten", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    let mut transaction = lease.transaction().await.unwrap();
    transaction.exec_drop(INSERT, (1,)).await.unwrap();
    drop(transaction);
    drop(lease);

    rig.pool.exec_drop(INSERT, (2,)).await.unwrap();

    assert_eq!(rig.rows().await, [2]);
}

#[tokio::test]
async fn options_hold_for_one_transaction() {
    let rig = Rig::with("options", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;

    let options = TransactionOptions::new()
        .isolation(IsolationLevel::Serializable)
        .read_only();
    let mut report = lease.transaction_with(options).await.unwrap();
    let refused = report.exec_drop(INSERT, (1,)).await.unwrap_err();
    report.rollback().await.unwrap();
    let snapshot = TransactionOptions::new().consistent_snapshot();
    let mut snapshot = lease.transaction_with(snapshot).await.unwrap();
    snapshot.exec_drop(INSERT, (2,)).await.unwrap();
    snapshot.commit().await.unwrap();

    assert!(refused.to_string().contains("1792"), "{refused}");
    assert_eq!(rig.rows().await, [2]);
}

#[tokio::test]
async fn a_statement_that_commits_ends_the_transaction_and_later_ones_fail() {
    let rig = Rig::with("implicit", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    let mut transaction = lease.transaction().await.unwrap();
    transaction.exec_drop(INSERT, (1,)).await.unwrap();
    transaction
        .query_drop("CREATE TABLE u (a INT)")
        .await
        .unwrap();

    let refused = transaction.exec_drop(INSERT, (2,)).await.unwrap_err();
    let committed = transaction.commit().await;

    assert_eq!(classify(&refused), Class::Statement);
    assert!(refused.to_string().contains("ended before"), "{refused}");
    assert!(committed.is_err(), "it would be a lie");
    lease.exec_drop(INSERT, (3,)).await.unwrap();
    assert_eq!(rig.rows().await, [1, 3]);
}

#[tokio::test]
async fn an_error_of_a_statement_does_not_end_the_transaction() {
    let rig = Rig::with("error_inside", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    let mut transaction = lease.transaction().await.unwrap();
    transaction.exec_drop(INSERT, (1,)).await.unwrap();

    let twice = transaction.exec_drop(INSERT, (1,)).await.unwrap_err();
    transaction.exec_drop(INSERT, (2,)).await.unwrap();
    transaction.commit().await.unwrap();

    assert_eq!(classify(&twice), Class::Statement);
    assert_eq!(rig.rows().await, [1, 2]);
}

/// A deadlock rolls the whole transaction of its victim back.
#[tokio::test]
async fn nothing_is_written_outside_a_transaction_that_a_deadlock_has_ended() {
    let rig = Rig::with("deadlock", |builder| builder.max_size(2)).await;
    let mut first = rig.acquire().await;
    let mut second = rig.acquire().await;
    let all = "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)";
    first.query_drop(all).await.unwrap();
    let update = "UPDATE t SET b = b + 1 WHERE a = ?";
    let mut light = first.transaction().await.unwrap();
    let mut heavy = second.transaction().await.unwrap();
    light.exec_drop(update, (1,)).await.unwrap();
    // The server prefers the victim that has changed less.
    for a in 2..=5 {
        heavy.exec_drop(update, (a,)).await.unwrap();
    }

    let (lost, won) = tokio::join!(light.exec_drop(update, (2,)), heavy.exec_drop(update, (1,)));
    let later = light.exec_drop(INSERT, (9,)).await;
    let committed = light.commit().await;
    won.unwrap();
    heavy.commit().await.unwrap();

    assert_eq!(classify(&lost.unwrap_err()), Class::Conflict);
    assert!(later.is_err() && committed.is_err());
    assert_eq!(rig.rows().await, [1, 2, 3, 4, 5]);
}
