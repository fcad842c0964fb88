//! Types of sqlx out of a lease: a connection of its own, and a transaction.

use cenote_sqlx::Lease;
use sqlx::Transaction;

use super::{Rig, world};

/// A function that was written for sqlx.
async fn insert(
    rig: &Rig,
    transaction: &mut Transaction<'_, world::DB>,
    id: i32,
) -> Result<(), sqlx::Error> {
    rig.insert_on(&mut **transaction, id).await
}

#[tokio::test]
async fn a_detached_connection_leaves_the_pool_and_works() {
    let rig = Rig::new("detached").await;
    let lease = rig.db.acquire().await.unwrap();

    let mut own = Lease::detach(lease).await.unwrap();

    let status = rig.db.pool().status();
    assert_eq!((status.in_use, status.detached), (0, 1));
    rig.insert_on(&mut own, 1).await.unwrap();
    assert_eq!(rig.ids().await, [1]);
    rig.assert_clean().await;
    sqlx::Connection::close(own).await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_open_is_rolled_back_when_its_connection_is_detached() {
    let rig = Rig::new("detached_open").await;
    for begin in world::BEGINS {
        let mut lease = rig.db.acquire().await.unwrap();
        sqlx::raw_sql(world::sql(begin))
            .execute(&mut lease)
            .await
            .unwrap();
        rig.insert_on(&mut lease, 1).await.unwrap();

        let mut own = Lease::detach(lease).await.unwrap();

        rig.insert_on(&mut own, 2).await.unwrap();
        assert_eq!(rig.ids().await, [2], "{begin}: the first is undone");
        rig.run("DELETE FROM {}").await;
        sqlx::Connection::close(own).await.unwrap();
    }
}

#[tokio::test]
async fn the_connection_of_an_outer_transaction_cannot_be_detached() {
    let rig = Rig::new("detached_outer").await;
    rig.db
        .transaction(async || {
            rig.insert(1).await?;
            let lease = rig.db.acquire().await?;
            let refused = Lease::detach(lease).await.err().unwrap();
            assert!(refused.to_string().contains("outside"), "{refused}");
            rig.insert(2).await
        })
        .await
        .unwrap();

    assert_eq!(rig.ids().await, [1, 2]);
    assert_eq!(rig.db.pool().status().detached, 0);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_function_that_takes_a_transaction_of_sqlx_can_be_called() {
    let rig = Rig::new("of_sqlx").await;
    let mut lease = rig.db.acquire().await.unwrap();

    let mut transaction = lease.begin_sqlx().await.unwrap();
    insert(&rig, &mut transaction, 1).await.unwrap();
    transaction.commit().await.unwrap();
    let mut transaction = lease.begin_sqlx().await.unwrap();
    insert(&rig, &mut transaction, 2).await.unwrap();
    transaction.rollback().await.unwrap();
    let mut transaction = lease.begin_sqlx().await.unwrap();
    insert(&rig, &mut transaction, 3).await.unwrap();
    drop(transaction);

    rig.insert_on(&mut lease, 4).await.unwrap();
    assert_eq!(
        rig.ids().await,
        [1, 4],
        "the fourth is not part of the third"
    );
    drop(lease);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_of_sqlx_that_is_dropped_with_its_lease_is_rolled_back() {
    let rig = Rig::with("of_sqlx_dropped", |builder| builder.max_size(1)).await;
    let mut lease = rig.db.acquire().await.unwrap();
    let mut transaction = lease.begin_sqlx().await.unwrap();
    insert(&rig, &mut transaction, 1).await.unwrap();

    drop(transaction);
    drop(lease);

    assert_eq!(rig.ids().await, Vec::<i32>::new());
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_of_sqlx_can_be_nested_in_ours() {
    let rig = Rig::new("of_sqlx_nested").await;
    let mut outer = rig.db.begin().await.unwrap();
    rig.insert_on(&mut outer, 1).await.unwrap();

    let mut inner = outer.begin_sqlx().await.unwrap();
    insert(&rig, &mut inner, 2).await.unwrap();
    inner.commit().await.unwrap();
    let mut inner = outer.begin_sqlx().await.unwrap();
    insert(&rig, &mut inner, 3).await.unwrap();
    drop(inner);
    rig.insert_on(&mut outer, 4).await.unwrap();
    outer.commit().await.unwrap();

    assert_eq!(rig.ids().await, [1, 2, 4]);
    let mut outer = rig.db.begin().await.unwrap();
    let mut inner = outer.begin_sqlx().await.unwrap();
    insert(&rig, &mut inner, 6).await.unwrap();
    inner.commit().await.unwrap();
    drop(outer);
    assert_eq!(rig.ids().await, [1, 2, 4], "the outer one decides");
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_commit_can_follow_the_drop_of_a_transaction_of_sqlx_which_only_queues_its_rollback() {
    let rig = Rig::new("of_sqlx_queued").await;
    for _ in 0..50 {
        let mut outer = rig.db.begin().await.unwrap();
        let mut inner = outer.begin_sqlx().await.unwrap();
        insert(&rig, &mut inner, 1).await.unwrap();

        drop(inner);

        outer.commit().await.unwrap();
    }
    assert_eq!(rig.ids().await, Vec::<i32>::new());
}
