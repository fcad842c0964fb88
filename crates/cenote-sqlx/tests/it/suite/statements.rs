//! `&db` is an executor: all that sqlx does with one.

use futures_util::{StreamExt, TryStreamExt};
use sqlx::{Acquire, Executor, Row, Statement};

use super::world::{self, DB};
use super::{Rig, number};

#[tokio::test]
async fn every_way_to_ask_works() {
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
async fn generic_code_takes_the_handle_a_lease_and_a_transaction() {
    async fn by_executor<'c>(executor: impl Executor<'c, Database = DB>) -> i64 {
        sqlx::query_scalar("SELECT 41 + 1")
            .fetch_one(executor)
            .await
            .map(|n: i64| n)
            .unwrap_or(-1)
    }
    async fn by_acquire<'c>(source: impl Acquire<'c, Database = DB>) -> i64 {
        let mut connection = source.acquire().await.unwrap();
        by_executor(&mut *connection).await
    }
    async fn by_begin<'c>(source: impl Acquire<'c, Database = DB>) -> Result<(), sqlx::Error> {
        source.begin().await?.commit().await
    }
    let rig = Rig::new("generic").await;
    let expected = by_executor(&rig.db).await;

    let mut lease = rig.db.acquire().await.unwrap();
    assert_eq!(by_executor(&mut lease).await, expected);
    assert_eq!(by_executor(&mut *lease).await, expected);
    assert_eq!(by_acquire(&mut lease).await, expected);
    by_begin(&mut lease).await.unwrap();
    drop(lease);
    let mut transaction = rig.db.begin().await.unwrap();
    assert_eq!(by_executor(&mut transaction).await, expected);
    assert_eq!(by_acquire(&mut transaction).await, expected);
    by_begin(&mut transaction).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(by_acquire(&rig.db).await, expected);

    let refused = by_begin(&rig.db).await.unwrap_err().to_string();
    assert!(refused.contains("Db::begin"), "{refused}");
    rig.assert_clean().await;
}

#[tokio::test]
async fn statements_run_in_spawned_tasks() {
    let rig = Rig::new("spawned").await;
    let tasks = (0..20).map(|id| {
        let db = rig.db.clone();
        let sql = rig.sql("INSERT INTO {} (id, amount) VALUES (?, 1)");
        tokio::spawn(async move { sqlx::query(sql).bind(id).execute(&db).await })
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
        "nothing before the first look"
    );

    assert!(rows.next().await.unwrap().is_ok());
    assert_eq!(rig.db.pool().status().in_use, 1);
    drop(rows);

    assert_eq!(rig.db.pool().status().in_use, 0);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_lease_for_one_statement_is_labelled_with_its_text() {
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
async fn a_statement_that_fails_poisons_nothing() {
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
        "the same connection goes on"
    );
}

#[tokio::test]
async fn who_waits_too_long_learns_what_the_others_run() {
    let limit = std::time::Duration::from_millis(100);
    let rig = Rig::with("waits", |builder| {
        builder.max_size(1).acquire_timeout(limit)
    })
    .await;
    let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
    assert!(rows.next().await.unwrap().is_ok());

    let error = number(&rig.db, "SELECT 1").await.unwrap_err();

    let shown = error.to_string();
    assert!(shown.contains("1 of 1 in use"), "{shown}");
    assert!(cenote_sqlx::pool_error(&error).is_some(), "{error:?}");
    let held = &rig.db.pool().leases()[0];
    assert!(
        held.label.as_deref().unwrap().contains("SELECT"),
        "{held:?}"
    );
}
