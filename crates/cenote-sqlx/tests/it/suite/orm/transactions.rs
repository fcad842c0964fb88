//! Transactions: ambient ones, SeaORM's own, and one inside the other.

use std::time::Duration;

use cenote_sqlx::OrmError;
use futures_util::FutureExt;
use sea_orm::{
    AccessMode, ConnectionTrait, DbErr, IsolationLevel, Statement, TransactionError,
    TransactionTrait,
};
use tokio::time::sleep;

use super::{Rig, world};
use crate::bakery::{bake, cakes};

const NONE: [&str; 0] = [];

/// Code that is written for SeaORM alone.
async fn bake_both<C: TransactionTrait>(
    db: &C,
    one: &'static str,
    two: &'static str,
) -> Result<(), TransactionError<DbErr>> {
    db.transaction(|transaction| {
        Box::pin(async move {
            bake(transaction, one).await?;
            bake(transaction, two).await.map(drop)
        })
    })
    .await
}

#[tokio::test]
async fn entities_on_the_handle_are_part_of_an_ambient_transaction() {
    let rig = Rig::new("ambient").await;

    let kept = rig.db.transaction(async || {
        rig.bake("a").await?;
        let raw = sqlx::query("INSERT INTO cakes (name) VALUES ('b')");
        raw.execute(&rig.db).await?;
        assert_eq!(rig.cakes().await, ["a", "b"]);
        assert_eq!(rig.db.pool().status().in_use, 1);
        Ok::<_, OrmError>(())
    });
    kept.await.unwrap();
    let lost = rig.db.transaction(async || {
        rig.bake("c").await?;
        rig.bake("a").await?;
        Ok::<_, OrmError>(())
    });
    let lost: DbErr = lost.await.unwrap_err().into();

    assert!(lost.sql_err().is_some(), "the error of the entity: {lost}");
    assert_eq!(rig.cakes().await, ["a", "b"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_callback_commits_after_ok_and_rolls_back_after_an_error() {
    let rig = Rig::new("callback").await;

    bake_both(&rig.db, "a", "b").await.unwrap();
    let failed = bake_both(&rig.db, "c", "a").await;

    assert!(matches!(failed, Err(TransactionError::Transaction(_))));
    assert_eq!(rig.cakes().await, ["a", "b"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_callback_that_panics_is_rolled_back() {
    let rig = Rig::new("panics").await;

    let work = TransactionTrait::transaction::<_, (), DbErr>(&rig.db, |transaction| {
        Box::pin(async move {
            bake(transaction, "a").await?;
            panic!("as it should")
        })
    });
    let panicked = std::panic::AssertUnwindSafe(work).catch_unwind().await;

    assert!(panicked.is_err());
    assert_eq!(rig.cakes().await, NONE);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_nested_transaction_is_a_savepoint() {
    let rig = Rig::new("nested").await;

    let outer = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&outer, "a").await.unwrap();
    let failed = bake_both(&outer, "b", "a").await;
    assert!(matches!(failed, Err(TransactionError::Transaction(_))));
    bake_both(&outer, "c", "d").await.unwrap();
    let middle = outer.begin().await.unwrap();
    bake(&middle, "e").await.unwrap();
    let inner = middle.begin().await.unwrap();
    bake(&inner, "f").await.unwrap();
    inner.rollback().await.unwrap();
    let inner = middle.begin().await.unwrap();
    bake(&inner, "g").await.unwrap();
    drop(inner);
    middle.commit().await.unwrap();
    drop(outer.begin().await.unwrap());
    assert_eq!(rig.db.pool().status().in_use, 1, "all share one connection");
    outer.commit().await.unwrap();

    assert_eq!(rig.cakes().await, ["a", "c", "d", "e"]);
    assert_eq!(rig.db.pool().status().in_use, 0);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_rolled_back() {
    let rig = Rig::with("dropped", |builder| builder.max_size(1)).await;

    let dropped = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&dropped, "a").await.unwrap();
    let nested = dropped.begin().await.unwrap();
    bake(&nested, "b").await.unwrap();
    nested.commit().await.unwrap();
    drop(dropped);

    assert_eq!(rig.cakes().await, NONE);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_inside_an_ambient_one_is_a_savepoint() {
    let rig = Rig::new("inside").await;

    let work = rig.db.transaction(async || {
        rig.bake("a").await?;
        let kept = TransactionTrait::begin(&rig.db).await?;
        bake(&kept, "b").await?;
        kept.commit().await?;
        let dropped = TransactionTrait::begin(&rig.db).await?;
        bake(&dropped, "c").await?;
        drop(dropped);
        let undone = bake_both(&rig.db, "d", "a").await;
        assert!(matches!(undone, Err(TransactionError::Transaction(_))));
        bake_both(&rig.db, "e", "f").await.expect("a savepoint");
        assert_eq!(rig.cakes().await, ["a", "b", "e", "f"]);
        Ok::<_, OrmError>(())
    });

    work.await.unwrap();
    assert_eq!(rig.cakes().await, ["a", "b", "e", "f"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_commit_before_a_nested_transaction_has_ended_is_an_error() {
    let rig = Rig::with("order", |builder| builder.max_size(1)).await;

    let outer = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&outer, "a").await.unwrap();
    let middle = outer.begin().await.unwrap();
    let inner = middle.begin().await.unwrap();
    bake(&inner, "b").await.unwrap();
    let early = middle.commit().await.unwrap_err();
    let doomed = bake(&inner, "c").await.unwrap_err();
    drop(inner);
    let whole = outer.commit().await;

    assert!(early.to_string().contains("has not ended"), "{early}");
    assert!(
        matches!(doomed, DbErr::Query(_) | DbErr::Exec(_)),
        "{doomed:?}"
    );
    assert!(whole.is_err(), "the whole transaction is lost");
    assert_eq!(rig.cakes().await, NONE);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_nested_transaction_that_outlives_the_outer_one_fails() {
    let rig = Rig::with("outlives", |builder| builder.max_size(1)).await;

    let outer = TransactionTrait::begin(&rig.db).await.unwrap();
    let inner = outer.begin().await.unwrap();
    bake(&inner, "a").await.unwrap();
    drop(outer);
    let late = bake(&inner, "b").await.unwrap_err();
    let ended = inner.commit().await.unwrap_err();

    for error in [late, ended] {
        assert!(error.to_string().contains("outer transaction"), "{error}");
    }
    assert_eq!(rig.cakes().await, NONE, "the connection is free");
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_lost_nested_transaction_loses_an_ambient_one() {
    let rig = Rig::with("doomed", |builder| builder.max_size(1)).await;

    let work = rig.db.transaction(async || {
        rig.bake("a").await?;
        let outer = TransactionTrait::begin(&rig.db).await?;
        let inner = outer.begin().await?;
        bake(&inner, "b").await?;
        drop(outer);
        drop(inner);
        Ok::<_, OrmError>(())
    });

    assert!(work.await.is_err(), "its rollback was not in order");
    assert_eq!(rig.cakes().await, NONE);
    rig.assert_clean().await;
}

#[tokio::test]
async fn two_tasks_can_use_one_transaction() {
    let rig = Rig::new("tasks").await;
    let outer = TransactionTrait::begin(&rig.db).await.unwrap();

    let baked = tokio::join!(bake(&outer, "a"), bake(&outer, "b"), cakes(&outer));
    baked.0.unwrap();
    baked.1.unwrap();
    baked.2.unwrap();
    let nested = outer.begin().await.unwrap();
    let moved = tokio::spawn(async move {
        bake(&nested, "c").await?;
        nested.commit().await
    });
    moved.await.unwrap().unwrap();
    outer.commit().await.unwrap();

    assert_eq!(rig.cakes().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn the_isolation_level_is_the_one_that_was_asked_for() {
    let rig = Rig::new("levels").await;
    let Some(query) = world::LEVEL else {
        return assert!(world::USUAL_LEVEL == "SERIALIZABLE", "has one level");
    };
    let query = Statement::from_string(rig.db.get_database_backend(), query);
    // MySQL tells the level after the first read, with a delay.
    let has = async |isolation, access, level: &str| {
        let begun = rig.db.begin_with_config(isolation, access).await.unwrap();
        cakes(&begun).await.unwrap();
        let mut seen = String::new();
        for _ in 0..20 {
            if let Some(row) = begun.query_one_raw(query.clone()).await.unwrap() {
                seen = row.try_get_by_index(0).unwrap();
            }
            if seen == level {
                break;
            }
            sleep(Duration::from_millis(150)).await;
        }
        begun.commit().await.unwrap();
        assert_eq!(seen, level, "{isolation:?} {access:?}");
    };

    for asked in [
        IsolationLevel::Serializable,
        IsolationLevel::RepeatableRead,
        IsolationLevel::ReadCommitted,
        IsolationLevel::ReadUncommitted,
    ] {
        let modes = [AccessMode::ReadOnly, AccessMode::ReadWrite].map(Some);
        for access in [None].into_iter().chain(modes) {
            has(Some(asked), access, &asked.to_string()).await;
        }
    }

    has(None, None, world::USUAL_LEVEL).await;
}

#[tokio::test]
async fn a_read_only_transaction_refuses_writes() {
    let rig = Rig::new("access").await;
    rig.bake("a").await.unwrap();

    let reading = rig.db.begin_with_config(None, Some(AccessMode::ReadOnly));
    let reading = reading.await.unwrap();
    assert_eq!(cakes(&reading).await.unwrap(), ["a"]);
    assert!(bake(&reading, "b").await.is_err());
    reading.rollback().await.unwrap();
    let refused = TransactionTrait::transaction_with_config::<_, (), DbErr>(
        &rig.db,
        |transaction| Box::pin(async move { bake(transaction, "c").await.map(drop) }),
        None,
        Some(AccessMode::ReadOnly),
    );
    assert!(refused.await.is_err());
    let writing = rig.db.begin_with_config(None, Some(AccessMode::ReadWrite));
    let writing = writing.await.unwrap();
    bake(&writing, "d").await.unwrap();
    writing.commit().await.unwrap();

    assert_eq!(rig.cakes().await, ["a", "d"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_savepoint_takes_no_options() {
    let rig = Rig::new("no_options").await;
    let outer = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&outer, "a").await.unwrap();

    let nested = outer.begin_with_config(Some(IsolationLevel::Serializable), None);
    assert!(nested.await.is_err());

    outer.commit().await.unwrap();
    assert_eq!(rig.cakes().await, ["a"], "the transaction goes on");
}
