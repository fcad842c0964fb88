//! No open transaction reaches the next user.

use cenote::CloseReason;
use cenote_diesel::diesel::result::Error;
use cenote_diesel::diesel_async::{
    AsyncConnection, SimpleAsyncConnection, TransactionManager as _,
};

use crate::next;
use crate::world::{World, on_each_backend};

type Manager<C> = <C as AsyncConnection>::TransactionManager;

on_each_backend!(
    a_transaction_left_open_is_rolled_back,
    nested_transactions_left_open_are_rolled_back,
    a_transaction_of_raw_sql_is_rolled_back,
    a_transaction_in_a_batch_is_rolled_back,
    a_transaction_that_has_failed_is_rolled_back,
    a_raw_transaction_that_was_committed_is_kept,
    a_connection_with_a_broken_transaction_manager_is_closed,
    an_error_rolls_back_and_keeps_the_connection,
    a_test_transaction_is_shared,
    a_connection_in_transaction_stays_in_its_scope,
);

async fn a_transaction_left_open_is_rolled_back<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    Manager::<W::C>::begin_transaction(&mut *lease)
        .await
        .unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same, "it is kept");
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn nested_transactions_left_open_are_rolled_back<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    for a in 0..3 {
        Manager::<W::C>::begin_transaction(&mut *lease)
            .await
            .unwrap();
        let insert = format!("insert into t values ({a})");
        lease.batch_execute(&insert).await.unwrap();
    }

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    // diesel counts from zero again: this is a transaction, not a savepoint.
    let insert = lease.transaction::<_, Error, _>(async |lease| {
        lease.batch_execute("insert into t values (7)").await
    });
    insert.await.unwrap();
    assert_eq!(world.rows().await, [7]);
}

async fn a_transaction_of_raw_sql_is_rolled_back<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    lease.batch_execute("BEGIN").await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn a_transaction_in_a_batch_is_rolled_back<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let batch = "select 1; begin; insert into t values (1)";
    lease.batch_execute(batch).await.unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn a_transaction_that_has_failed_is_rolled_back<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    lease.batch_execute("begin").await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();
    assert!(lease.batch_execute("select * from nowhere").await.is_err());

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(W::echo(&mut lease, 7).await, 7, "it works");
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn a_raw_transaction_that_was_committed_is_kept<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let batch = "begin; insert into t values (1); commit";
    lease.batch_execute(batch).await.unwrap();

    let (_lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(world.rows().await, [1]);
}

async fn a_connection_with_a_broken_transaction_manager_is_closed<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    Manager::<W::C>::begin_transaction(&mut *lease)
        .await
        .unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();
    Manager::<W::C>::transaction_manager_status_mut(&mut *lease).set_in_error();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn an_error_rolls_back_and_keeps_the_connection<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let failed = lease.transaction::<(), Error, _>(async |lease| {
        lease.batch_execute("insert into t values (1)").await?;
        Err(Error::RollbackTransaction)
    });
    assert!(failed.await.is_err());

    let (_lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert!(world.rows().await.is_empty());
}

/// Tests that use diesel share one connection and a transaction that is never committed.
async fn a_test_transaction_is_shared<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    lease.begin_test_transaction().await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;
    assert!(is_same);
    Manager::<W::C>::begin_transaction(&mut *lease)
        .await
        .unwrap();
    lease
        .batch_execute("insert into t values (2)")
        .await
        .unwrap();
    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    let status = Manager::<W::C>::transaction_manager_status_mut(&mut *lease);
    let depth = status.transaction_depth().unwrap().unwrap().get();
    assert_eq!(depth, 1, "the inner one is rolled back");
    assert!(W::is_open(&mut lease).await, "the outer one is open");
    assert!(world.rows().await.is_empty());
}

async fn a_connection_in_transaction_stays_in_its_scope<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(2);

    cenote::scope(async {
        let mut bound = pool.bind().await.unwrap();
        bound.batch_execute("begin").await.unwrap();
        bound
            .batch_execute("insert into t values (1)")
            .await
            .unwrap();
        drop(bound);
        assert_eq!(pool.status().in_use, 1, "it rests in the scope");
        let mut bound = pool.bind().await.unwrap();
        bound.batch_execute("commit").await.unwrap();
    })
    .await;

    assert_eq!(pool.status().in_use, 0);
    assert_eq!(world.rows().await, [1]);
}
