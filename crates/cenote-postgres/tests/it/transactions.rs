//! Transactions that are passed along.

use std::time::Duration;

use cenote_postgres::tokio_postgres::IsolationLevel;
use cenote_postgres::{Lease, TransactionOptions};
use tokio::time::timeout;

use crate::{LIMIT, backend, is_open, pool};

async fn rows(lease: &Lease) -> i64 {
    lease
        .query_one("select count(*) from t", &[])
        .await
        .unwrap()
        .get(0)
}

async fn with_table(lease: &Lease) {
    let table = "create temp table t (a int unique deferrable initially deferred)";
    lease.batch_execute(table).await.unwrap();
}

#[tokio::test]
async fn a_transaction_is_committed_or_rolled_back() {
    let pool = pool(1);
    let mut lease = pool.acquire().await.unwrap();
    with_table(&lease).await;

    let committed = lease.transaction().await.unwrap();
    committed
        .execute("insert into t values (1)", &[])
        .await
        .unwrap();
    committed.commit().await.unwrap();
    let rolled_back = lease.transaction().await.unwrap();
    rolled_back
        .execute("insert into t values (2)", &[])
        .await
        .unwrap();
    rolled_back.rollback().await.unwrap();
    let dropped = lease.transaction().await.unwrap();
    dropped
        .execute("insert into t values (3)", &[])
        .await
        .unwrap();
    drop(dropped);

    assert_eq!(rows(&lease).await, 1);
}

#[tokio::test]
async fn a_nested_transaction_is_a_savepoint() {
    let pool = pool(1);
    let mut lease = pool.acquire().await.unwrap();
    with_table(&lease).await;

    let mut outer = lease.transaction().await.unwrap();
    outer
        .execute("insert into t values (1)", &[])
        .await
        .unwrap();
    let inner = outer.transaction().await.unwrap();
    inner
        .execute("insert into t values (2)", &[])
        .await
        .unwrap();
    drop(inner);
    let mut inner = outer.transaction().await.unwrap();
    let innermost = inner.transaction().await.unwrap();
    assert!(innermost.execute("select 1 / 0", &[]).await.is_err());
    innermost.rollback().await.unwrap();
    inner
        .execute("insert into t values (3)", &[])
        .await
        .unwrap();
    inner.commit().await.unwrap();
    outer.commit().await.unwrap();

    assert_eq!(rows(&lease).await, 2);
}

#[tokio::test]
async fn a_dropped_transaction_needs_no_cleaning() {
    let pool = pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let transaction = lease.transaction().await.unwrap();
    transaction.execute("select 1", &[]).await.unwrap();

    drop(transaction);
    drop(lease);

    assert_eq!(pool.status().idle, 1, "the rollback is on its way");
    assert!(!is_open(&pool.acquire().await.unwrap()).await);
}

#[tokio::test]
async fn a_failed_transaction_cannot_be_committed() {
    let pool = pool(1);
    let mut lease = pool.acquire().await.unwrap();
    with_table(&lease).await;
    let before = backend(&lease).await;

    let failed = lease.transaction().await.unwrap();
    failed
        .execute("insert into t values (1)", &[])
        .await
        .unwrap();
    assert!(failed.execute("select 1 / 0", &[]).await.is_err());
    let error = failed.commit().await.unwrap_err();

    assert_eq!(error.code().unwrap().code(), "25P02");
    assert_eq!(rows(&lease).await, 0);
    let refused = lease.transaction().await.unwrap();
    refused
        .execute("insert into t values (1), (1)", &[])
        .await
        .unwrap();
    let error = refused.commit().await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "23505");
    assert_eq!(rows(&lease).await, 0);
    drop(lease);
    assert_eq!(backend(&pool.acquire().await.unwrap()).await, before);
}

#[tokio::test]
async fn options_are_used() {
    let pool = pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let options = TransactionOptions::new().isolation(IsolationLevel::Serializable);
    let options = options.read_only().deferrable();

    let transaction = lease.transaction_with(options).await.unwrap();

    for (name, value) in [
        ("transaction_isolation", "serializable"),
        ("transaction_read_only", "on"),
        ("transaction_deferrable", "on"),
    ] {
        let row = transaction.query_one(&format!("show {name}"), &[]).await;
        assert_eq!(row.unwrap().get::<_, &str>(0), value, "{name}");
    }
    transaction.rollback().await.unwrap();
    for isolation in [
        IsolationLevel::ReadUncommitted,
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
    ] {
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = lease.transaction_with(options).await.unwrap();
        transaction.commit().await.unwrap();
    }
}

#[tokio::test]
async fn the_server_is_not_asked_for_more_than_needed() {
    let server = cenote_servers::postgres::start().unwrap();
    let pool = crate::builder_at(server.url(), 1).build().unwrap();
    for _ in 0..3 {
        let mut lease = pool.acquire().await.unwrap();
        drop(lease.transaction().await.unwrap());
        lease.transaction().await.unwrap().commit().await.unwrap();
        lease.transaction().await.unwrap().rollback().await.unwrap();
        lease.batch_execute("begin").await.unwrap();
        drop(lease);
        let work = async || pool.query("select 1", &[]).await;
        pool.transaction(work).await.unwrap();
        pool.execute("set lock_timeout = '7s'", &[]).await.unwrap();
    }

    assert_eq!(pool.status().opened, 1);
    let log = server.log();
    assert!(
        !log.contains("WARNING"),
        "a rollback without a transaction: {log}"
    );
}

#[tokio::test]
async fn a_rollback_does_not_wait_for_a_statement_that_was_dropped() {
    let pool = pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let before = backend(&lease).await;
    let transaction = lease.transaction().await.unwrap();
    let late = transaction.query("select pg_sleep(600)", &[]);
    assert!(timeout(Duration::from_millis(50), late).await.is_err());

    timeout(LIMIT, transaction.rollback())
        .await
        .expect("it is cancelled")
        .unwrap();

    assert_eq!(backend(&lease).await, before);
    assert!(!is_open(&lease).await);
}
