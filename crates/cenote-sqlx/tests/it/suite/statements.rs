//! `&db` as an executor.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use sqlx::{Executor, Row, Statement};

use super::world;
use super::{Rig, number};

#[tokio::test]
async fn every_method_of_a_query_works() {
    let rig = Rig::new("ways").await;
    let db = &rig.db;
    let insert = rig.sql("INSERT INTO {} (id, amount) VALUES (?, ?)");

    for id in 1..=3 {
        let done = sqlx::query(insert.clone())
            .bind(id)
            .bind(10_i64)
            .execute(db)
            .await;
        assert_eq!(done.unwrap().rows_affected(), 1);
    }

    let all = rig.sql("SELECT id, amount FROM {} ORDER BY id");
    let rows = sqlx::query(all.clone()).fetch_all(db).await.unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row.get::<i32, _>(0))
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let pairs: Vec<(i32, i64)> = sqlx::query_as(all.clone()).fetch_all(db).await.unwrap();
    assert_eq!(pairs[2], (3, 10));
    let streamed = sqlx::query_as::<_, (i32, i64)>(all.clone()).fetch(db);
    assert_eq!(streamed.try_collect::<Vec<_>>().await.unwrap(), pairs);
    let first: i32 = sqlx::query_scalar(all.clone()).fetch_one(db).await.unwrap();
    assert_eq!(first, 1);
    let none = rig.sql("SELECT id FROM {} WHERE id = 99");
    let nothing: Option<i32> = sqlx::query_scalar(none.clone())
        .fetch_optional(db)
        .await
        .unwrap();
    assert_eq!(nothing, None);
    let missing = sqlx::query(none).fetch_one(db).await;
    assert!(matches!(missing, Err(sqlx::Error::RowNotFound)));
    let raw = sqlx::raw_sql(rig.sql("SELECT id FROM {}; SELECT id FROM {} WHERE id > 1"));
    let steps = raw.fetch_many(db).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(steps.iter().filter(|step| step.is_right()).count(), 5);
    assert_eq!(db.pool().status().in_use, 0);
}

#[tokio::test]
async fn a_statement_is_prepared_and_described_through_the_handle() {
    let rig = Rig::new("prepared").await;
    rig.insert(7).await.unwrap();
    let sql = || rig.sql("SELECT id FROM {} WHERE id = ?");

    let statement = (&rig.db).prepare(sql()).await.unwrap();
    let described = (&rig.db).describe(sql()).await.unwrap();

    for _ in 0..3 {
        let id: i32 = statement
            .query_scalar()
            .bind(7)
            .fetch_one(&rig.db)
            .await
            .unwrap();
        assert_eq!(id, 7);
    }
    assert_eq!(described.columns.len(), 1);
}

#[tokio::test]
async fn statements_run_in_spawned_tasks() {
    let rig = Arc::new(Rig::new("spawned").await);
    let tasks = (0..20).map(|id| {
        let rig = rig.clone();
        tokio::spawn(async move { rig.insert(id).await })
    });

    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }

    assert_eq!(rig.ids().await.len(), 20);
}

#[tokio::test]
async fn a_stream_holds_its_connection_until_it_is_dropped() {
    let rig = Rig::new("stream").await;
    let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
    assert_eq!(
        rig.db.pool().status().in_use,
        0,
        "nothing is acquired before the first row"
    );

    assert!(rows.next().await.unwrap().is_ok());
    assert_eq!(rig.db.pool().status().in_use, 1);
    drop(rows);

    assert_eq!(rig.db.pool().status().in_use, 0);
    rig.assert_clean().await;
}

#[tokio::test]
async fn the_lease_of_a_statement_has_its_text_as_label() {
    let rig = Rig::new("label").await;
    let sql = format!("SELECT\n   1 {}", "/* padding */ ".repeat(20));
    let mut rows = sqlx::query(world::sql(&sql)).fetch(&rig.db);

    assert!(rows.next().await.unwrap().is_ok());

    let label = rig.db.pool().leases()[0].label.clone().unwrap();
    assert!(label.starts_with("SELECT 1 /* padding */"), "{label}");
    assert!(
        label.ends_with("*/…") && label.chars().count() <= 121,
        "{label}"
    );
}

#[tokio::test]
async fn a_statement_that_fails_closes_no_connection() {
    let rig = Rig::with("fails", |builder| builder.max_size(1)).await;
    rig.insert(1).await.unwrap();
    let opened = rig.db.pool().status().opened;

    let twice = rig.insert(1).await.unwrap_err();
    let wrong = number(&rig.db, "SELEKT 1").await.unwrap_err();

    assert!(twice.as_database_error().unwrap().is_unique_violation());
    assert!(wrong.as_database_error().is_some(), "{wrong}");
    assert_eq!(rig.ids().await, [1]);
    assert_eq!(
        rig.db.pool().status().opened,
        opened,
        "the connection is kept"
    );
}
