//! The sandbox: one connection and one transaction that is never committed.

use std::time::Duration;

use cenote_sqlx::{Isolation, Retry, TransactionOptions};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::world::{self, Db};
use super::{Rig, number};

const NONE: [i32; 0] = [];

impl Rig {
    async fn sandbox(&self) -> Db {
        Db::sandbox(world::url_at(&self._home)).await.unwrap()
    }

    async fn ids_on(&self, db: &Db) -> Vec<i32> {
        let sql = self.sql("SELECT id FROM {} ORDER BY id");
        sqlx::query_scalar(sql).fetch_all(db).await.unwrap()
    }
}

#[tokio::test]
async fn everything_in_a_sandbox_is_rolled_back_when_its_last_handle_is_dropped() {
    let rig = Rig::new("box_all").await;
    let db = rig.sandbox().await;
    let clone = db.clone();

    rig.insert_on(&db, 1).await.unwrap();
    let mut by_hand = db.begin().await.unwrap();
    rig.insert_on(&mut by_hand, 2).await.unwrap();
    by_hand.commit().await.unwrap();
    let ambient = db.transaction(async || rig.insert_on(&db, 3).await);
    ambient.await.unwrap();
    let mut lease = db.acquire().await.unwrap();
    rig.insert_on(&mut lease, 4).await.unwrap();
    drop(lease);
    drop(db);

    assert_eq!(rig.ids_on(&clone).await, [1, 2, 3, 4]);
    assert_eq!(rig.ids().await, NONE, "another connection sees nothing");
    drop(clone);
    rig.insert(1).await.unwrap();
    assert_eq!(rig.ids().await, [1], "no lock and no row is left");
}

#[tokio::test]
async fn every_task_that_uses_a_sandbox_is_in_it() {
    let rig = std::sync::Arc::new(Rig::new("box_tasks").await);
    let db = rig.sandbox().await;

    let tasks = (0..20).map(|id| {
        let (rig, db) = (rig.clone(), db.clone());
        tokio::spawn(async move {
            db.transaction(async || {
                assert!(db.in_transaction());
                rig.insert_on(&db, id).await?;
                tokio::task::yield_now().await;
                rig.insert_on(&db, id + 100).await?;
                match id % 2 {
                    0 => Ok(()),
                    _ => Err(sqlx::Error::RowNotFound),
                }
            })
            .await
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        let _ = task.await.unwrap();
    }

    assert!(!db.in_transaction());
    let even = (0..20).step_by(2);
    let expected: Vec<i32> = even.clone().chain(even.map(|id| id + 100)).collect();
    assert_eq!(rig.ids_on(&db).await, expected);
    drop(db);
    assert_eq!(rig.ids().await, NONE);
}

#[tokio::test]
async fn a_failed_statement_spares_the_rest_of_a_sandbox() {
    let rig = Rig::new("box_fails").await;
    let db = rig.sandbox().await;
    rig.insert_on(&db, 1).await.unwrap();

    assert!(rig.insert_on(&db, 1).await.is_err(), "a duplicate");
    assert!(sqlx::query("SELEKT 1").execute(&db).await.is_err());
    let failed = db.transaction(async || {
        rig.insert_on(&db, 2).await?;
        rig.insert_on(&db, 1).await
    });
    assert!(failed.await.is_err());
    rig.insert_on(&db, 3).await.unwrap();
    assert!(rig.insert_on(&db, 3).await.is_err());

    assert_eq!(rig.ids_on(&db).await, [1, 3]);
}

#[tokio::test]
async fn a_dropped_transaction_or_statement_is_undone_alone() {
    let rig = Rig::new("box_drops").await;
    let db = rig.sandbox().await;
    rig.insert_on(&db, 1).await.unwrap();
    let mut dropped = db.begin().await.unwrap();
    rig.insert_on(&mut dropped, 2).await.unwrap();
    drop(dropped);
    let mut rows = sqlx::query(world::MANY).fetch(&db);
    assert!(rows.next().await.unwrap().is_ok());
    drop(rows);
    assert_eq!(rig.ids_on(&db).await, [1]);

    let slow = timeout(Duration::from_millis(200), number(&db, &world::slow(2))).await;
    assert!(slow.is_err());

    if world::DROP_LOSES {
        let error = rig.insert_on(&db, 3).await.unwrap_err().to_string();
        assert!(error.contains("isolated"), "{error}");
    } else {
        rig.insert_on(&db, 3).await.unwrap();
        assert_eq!(rig.ids_on(&db).await, [1, 3]);
    }
    drop(db);
    assert_eq!(rig.ids().await, NONE);
}

#[tokio::test]
async fn transactions_with_options_and_retries_work_in_a_sandbox() {
    let rig = Rig::new("box_options").await;
    let db = rig.sandbox().await;
    let level = TransactionOptions::new().isolation(Isolation::Serializable);
    let write = async || rig.insert_on(&db, 1).await;
    db.transaction_with(level, write).await.unwrap();
    let retry = Retry::default();
    db.retrying(retry, || rig.insert_on(&db, 2)).await.unwrap();
    let reading = TransactionOptions::new().read_only();

    let read = async || rig.insert_on(&db, 3).await;
    let refused = db.transaction_with(reading, read).await;

    assert_eq!(refused.is_err(), cfg_reads_only(), "{refused:?}");
    rig.insert_on(&db, 4).await.unwrap();
}

/// MySQL cannot make a part of a transaction read only.
fn cfg_reads_only() -> bool {
    <world::DB as sqlx::Database>::NAME != "MySQL"
}

#[tokio::test]
async fn text_that_would_end_a_sandbox_is_refused_with_the_way_out() {
    let rig = Rig::new("box_refused").await;
    let db = rig.sandbox().await;
    rig.insert_on(&db, 1).await.unwrap();

    for text in world::REFUSED {
        let error = sqlx::raw_sql(*text).execute(&db).await.unwrap_err();
        assert!(error.to_string().contains("isolated"), "{text}: {error}");
    }

    assert_eq!(rig.ids_on(&db).await, [1]);
    drop(db);
    assert_eq!(rig.ids().await, NONE);
}

#[tokio::test]
async fn a_second_connection_is_an_error_that_names_the_way_out() {
    let rig = Rig::new("box_second").await;
    let url = world::url_at(&rig._home);
    let url = crate::world::with_parameter(&url, "cenote.acquire_timeout=2s");
    let db = Db::sandbox(url).await.unwrap();

    let held = db.begin().await.unwrap();
    let error = rig.insert_on(&db, 1).await.unwrap_err().to_string();

    assert!(
        error.contains("in use") && error.contains("isolated"),
        "{error}"
    );
    drop(held);
    rig.insert_on(&db, 1).await.unwrap();
}

#[tokio::test]
async fn two_sandboxes_in_one_task_do_not_meet() {
    let (rig, other) = (Rig::new("box_two").await, Rig::new("box_other").await);
    let (one, two) = (rig.sandbox().await, other.sandbox().await);

    let nested = one.transaction(async || {
        rig.insert_on(&one, 1).await?;
        two.transaction(async || other.insert_on(&two, 2).await)
            .await?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });
    assert!(nested.await.is_err());

    assert_eq!(rig.ids_on(&one).await, NONE);
    assert_eq!(other.ids_on(&two).await, [2]);
}

#[tokio::test]
async fn a_closed_pool_leaves_a_sandbox_open_until_it_is_dropped() {
    let rig = Rig::new("box_closed").await;
    let db = rig.sandbox().await;
    rig.insert_on(&db, 1).await.unwrap();

    db.pool().close();
    let after = rig.insert_on(&db, 2).await;
    drop(db);

    assert!(after.is_ok(), "{after:?}");
    assert_eq!(rig.ids().await, NONE);
}

#[tokio::test]
async fn a_connection_is_used_by_one_sandbox_after_the_other() {
    let rig = Rig::new("box_again").await;
    let mut seen = std::collections::BTreeSet::new();

    for _ in 0..5 {
        let db = rig.sandbox().await;
        rig.insert_on(&db, 1).await.unwrap();
        if let Some(who) = world::WHO {
            seen.insert(number(&db, who).await.unwrap());
        }
        let pool = db.pool().clone();
        drop(db);
        pool.close_within(Duration::from_secs(5)).await;
    }

    assert!(
        seen.len() <= 2,
        "each sandbox opened a connection: {seen:?}"
    );
    assert_eq!(rig.ids().await, NONE);
}
