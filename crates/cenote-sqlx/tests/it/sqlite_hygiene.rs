//! SQLite alone: what a session was left with, and databases in memory.

use std::time::Duration;

use cenote_sqlx::Db;
use futures_util::StreamExt;
use sqlx::Sqlite;
use sqlx::sqlite::SqliteConnectOptions;

use crate::world::sqlite as world;

async fn number(db: &Db<Sqlite>, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

async fn run(db: &Db<Sqlite>, sql: &'static str) {
    sqlx::raw_sql(sql).execute(db).await.unwrap();
}

#[tokio::test]
async fn what_a_session_was_left_with_is_gone_with_its_connection() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(1).build().unwrap();
    let left: [(&str, &'static str, i64); 6] = [
        (
            "CREATE TEMP TABLE left_over (a INTEGER)",
            "SELECT count(*) FROM sqlite_temp_schema",
            1,
        ),
        (
            "CREATE TEMPORARY VIEW left_over AS SELECT 1",
            "SELECT count(*) FROM sqlite_temp_schema",
            1,
        ),
        (
            "ATTACH ':memory:' AS left_over",
            "SELECT count(*) FROM pragma_database_list WHERE name = 'left_over'",
            1,
        ),
        (
            "PRAGMA recursive_triggers = 1",
            "SELECT recursive_triggers FROM pragma_recursive_triggers",
            1,
        ),
        (
            "PRAGMA query_only = 1",
            "SELECT query_only FROM pragma_query_only",
            1,
        ),
        (
            "PRAGMA foreign_keys = 0",
            "SELECT 1 - foreign_keys FROM pragma_foreign_keys",
            1,
        ),
    ];
    for (leave, seen, there) in left {
        let mut lease = db.acquire().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(leave))
            .execute(&mut lease)
            .await
            .unwrap();
        let found: i64 = sqlx::query_scalar(seen)
            .fetch_one(&mut lease)
            .await
            .unwrap();
        assert_eq!(found, there, "{leave} is to leave something");
        drop(lease);

        assert_eq!(number(&db, seen).await, 0, "{leave} was left over");
    }
}

#[tokio::test]
async fn a_transaction_left_open_is_rolled_back_and_the_connection_is_kept() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(1).build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;
    for leave in [
        "BEGIN; INSERT INTO t VALUES (1)",
        "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)",
        "SAVEPOINT a; INSERT INTO t VALUES (1)",
    ] {
        run(&db, leave).await;
        assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0, "{leave}");
    }
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_transaction_begun_by_sql_keeps_its_place_in_the_line_of_writers() {
    let (builder, _home) = world::builder();
    let db = builder
        .max_size(3)
        .acquire_timeout(Duration::from_secs(20))
        .setting("PRAGMA busy_timeout = 0");
    let db = db.build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;

    let writing = cenote::Scope::new();
    writing.run(run(&db, "BEGIN IMMEDIATE")).await;
    let other = tokio::spawn({
        let db = db.clone();
        async move { sqlx::query("INSERT INTO t VALUES (2)").execute(&db).await }
    });
    for _ in 0..20 {
        writing.run(run(&db, "INSERT INTO t VALUES (1)")).await;
        tokio::task::yield_now().await;
    }
    assert!(!other.is_finished(), "it waits for its turn");
    writing.run(run(&db, "COMMIT")).await;
    writing.end();

    other
        .await
        .unwrap()
        .expect("it never meets a locked database");
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 21);
}

#[tokio::test]
async fn a_database_in_memory_outlives_its_connections() {
    let db = Db::sqlite("sqlite::memory:?cenote.max_size=1");
    let db = db.build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;

    // Changed, so that it is closed; and retired.
    run(&db, "PRAGMA recursive_triggers = 1").await;
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);
    db.pool().invalidate();
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);

    assert_eq!(db.pool().status().opened, 3);
    let another = Db::sqlite("sqlite::memory:?cenote.max_size=1");
    let another = another.build().unwrap();
    let alone = sqlx::query("SELECT * FROM t").execute(&another).await;
    assert!(alone.is_err(), "each handle has its own");
}

#[tokio::test]
async fn a_database_in_memory_that_is_shared_is_one_for_all_connections() {
    let options = |name: &str| {
        let options = SqliteConnectOptions::new().filename(name);
        options.in_memory(true).shared_cache(true)
    };
    for builder in [
        Db::sqlite("sqlite::memory:?cache=shared"),
        Db::sqlite("sqlite://cenote_by_url?mode=memory&cache=shared"),
        Db::with_options(options("file:cenote_by_uri")),
        Db::with_options(options("cenote_by_name")),
    ] {
        let db = builder.max_size(3).build().unwrap();
        run(&db, "CREATE TABLE t (a INTEGER)").await;
        run(&db, "INSERT INTO t VALUES (1)").await;
        let mut leases = Vec::new();
        for _ in 0..3 {
            let mut lease = db.acquire().await.unwrap();
            let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM t")
                .fetch_one(&mut lease)
                .await
                .unwrap();
            assert_eq!(rows, 1);
            leases.push(lease);
        }
        drop(leases);

        db.pool().invalidate();

        assert_eq!(number(&db, "SELECT count(*) FROM t").await, 1);
        assert!(db.pool().status().opened >= 4);
    }
    let split = SqliteConnectOptions::new().in_memory(true);
    let refused = Db::<Sqlite>::with_options(split)
        .build()
        .unwrap_err()
        .to_string();
    assert!(refused.contains("cache=shared"), "{refused}");
}

#[tokio::test]
async fn readers_read_at_the_same_time_on_connections_of_their_own() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(4).build().unwrap();
    let _writing = db.begin().await.unwrap();

    let mut all = Vec::new();
    for _ in 0..3 {
        let mut rows = sqlx::query(world::MANY).fetch(&db);
        assert!(rows.next().await.unwrap().is_ok());
        all.push(rows);
    }

    assert_eq!(db.pool().status().in_use, 4);
}
