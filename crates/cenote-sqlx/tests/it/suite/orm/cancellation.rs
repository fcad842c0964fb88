//! Operations of SeaORM that are dropped before their end, and a connection that is busy then.

use std::time::Duration;

use cenote_sqlx::OrmError;
use futures_util::TryStreamExt;
use sea_orm::{
    ConnectionTrait, DbErr, EntityTrait, Statement, TransactionSession, TransactionTrait,
};
use tokio::time::timeout;

use super::{Rig, world};
use crate::bakery::{bake, cake};

/// Drops `future` after this many polls.
async fn cut<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut left = polls;
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Bakes a pair in a nested transaction.
async fn pair<C: TransactionTrait>(db: &C, name: &str) -> Result<(), DbErr> {
    let outer = db.begin().await?;
    bake(&outer, &format!("{name} one")).await?;
    let inner = outer.begin().await?;
    bake(&inner, &format!("{name} two")).await?;
    inner.commit().await?;
    outer.commit().await
}

#[tokio::test]
async fn work_that_is_dropped_at_any_moment_leaves_a_clean_pool_and_whole_pairs() {
    let rig = Rig::with("any_moment", |builder| builder.max_size(2)).await;

    for polls in 0..24 {
        let _ = cut(polls, rig.bake(&format!("single {polls}"))).await;
        let _ = cut(polls, pair(&rig.db, &format!("pair {polls:02}"))).await;
        let ambient = rig.db.transaction(async || {
            pair(&rig.db, &format!("inside {polls:02}")).await?;
            Ok::<_, OrmError>(())
        });
        let _ = cut(polls, ambient).await;
        let rows = async { cake::Entity::find().stream(&rig.db).await?.try_next().await };
        let _ = cut(polls, rows).await;
    }

    rig.assert_clean().await;
    let cakes = rig.cakes().await;
    let paired = cakes.iter().filter(|name| !name.starts_with("single"));
    let halves: Vec<&str> = paired
        .map(|name| name.rsplit_once(' ').unwrap().0)
        .collect();
    for two in halves.chunks(2) {
        assert_eq!(two.first(), two.last(), "half a pair: {cakes:?}");
        assert_eq!(two.len(), 2, "half a pair: {cakes:?}");
    }
}

#[tokio::test]
async fn a_statement_that_is_dropped_in_a_transaction_spares_or_loses_the_whole() {
    let rig = Rig::with("cut_inside", |builder| builder.max_size(1)).await;
    let transaction = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&transaction, "a").await.unwrap();

    let slow = Statement::from_string(rig.db.get_database_backend(), world::slow(2));
    let slow = transaction.query_one_raw(slow);
    assert!(timeout(Duration::from_millis(200), slow).await.is_err());
    let went_on = bake(&transaction, "b").await.is_ok();
    let committed = transaction.commit().await.is_ok();

    assert_eq!(went_on, committed, "a part was committed");
    let expected: &[&str] = if committed { &["a", "b"] } else { &[] };
    assert_eq!(rig.cakes().await, expected);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_nested_transaction_that_is_dropped_while_the_connection_is_busy_loses_the_whole() {
    let rig = Rig::with("busy_drop", |builder| builder.max_size(1)).await;
    for name in ["a", "b", "c"] {
        rig.bake(name).await.unwrap();
    }
    let outer = TransactionTrait::begin(&rig.db).await.unwrap();
    let inner = outer.begin().await.unwrap();
    bake(&inner, "d").await.unwrap();

    let rows = cake::Entity::find().stream(&outer).await.unwrap();
    drop(inner);
    drop(rows);

    assert!(bake(&outer, "e").await.is_err(), "`d` would be committed");
    assert!(outer.commit().await.is_err());
    assert_eq!(rig.cakes().await, ["a", "b", "c"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_outer_transaction_that_is_dropped_while_the_connection_is_busy_is_rolled_back() {
    let rig = Rig::with("busy_outer", |builder| builder.max_size(1)).await;
    let outer = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&outer, "a").await.unwrap();
    let inner = outer.begin().await.unwrap();
    bake(&inner, "b").await.unwrap();

    let rows = cake::Entity::find().stream(&inner).await.unwrap();
    drop(outer);
    drop(rows);

    assert!(bake(&inner, "c").await.is_err());
    assert!(inner.commit().await.is_err());
    assert!(rig.cakes().await.is_empty(), "the connection is free");
    rig.assert_clean().await;
}
