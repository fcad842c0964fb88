//! Tests for SQLite alone: transactions left open, and databases in memory.

use std::time::Duration;

use cenote_sqlx::Db;
use futures_util::StreamExt;
use sqlx::Sqlite;
use sqlx::sqlite::SqliteConnectOptions;

use crate::world::sqlite::{self as world, number, run};

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
        cenote::scope(run(&db, leave)).await;
        assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0, "{leave}");
    }
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_transaction_begun_by_sql_keeps_the_right_to_write() {
    let (builder, _home) = world::builder();
    let db = builder
        .max_size(3)
        .acquire_timeout(Duration::from_secs(20))
        .setting("PRAGMA busy_timeout = 0");
    let db = db.build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;

    let writing = cenote::scope::Scope::new();
    writing.run(run(&db, "BEGIN IMMEDIATE")).await;
    let other = tokio::spawn({
        let db = db.clone();
        async move { sqlx::query("INSERT INTO t VALUES (2)").execute(&db).await }
    });
    for _ in 0..20 {
        writing.run(run(&db, "INSERT INTO t VALUES (1)")).await;
        tokio::task::yield_now().await;
    }
    assert!(!other.is_finished(), "the other writer does not wait");
    writing.run(run(&db, "COMMIT")).await;
    writing.end();

    other
        .await
        .unwrap()
        .expect("the other writer never finds the database locked");
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 21);
}

#[tokio::test]
async fn a_database_in_memory_outlives_its_connections() {
    let db = Db::sqlite("sqlite::memory:?cenote.max_size=1");
    let db = db.build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;

    // The first connection is closed because it was changed, the second because it is invalidated.
    cenote::scope(run(&db, "PRAGMA recursive_triggers = 1")).await;
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);
    db.pool().invalidate();
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);

    assert_eq!(db.pool().status().opened, 3);
    let another = Db::sqlite("sqlite::memory:?cenote.max_size=1");
    let another = another.build().unwrap();
    let alone = sqlx::query("SELECT * FROM t").execute(&another).await;
    assert!(alone.is_err(), "each handle has a database of its own");
}

#[tokio::test]
async fn a_database_in_memory_lives_as_long_as_its_handle_however_it_is_spelled() {
    let own = SqliteConnectOptions::new;
    let builders = [
        Db::sqlite("sqlite://x?mode=memory"),
        Db::sqlite("sqlite://x?mode=memory&cache=private"),
        Db::sqlite("sqlite::memory:"),
        Db::sqlite("sqlite://:memory:"),
        Db::sqlite("sqlite:"),
        Db::sqlite(":memory:"),
        Db::with_options(own()),
        Db::with_options(own().in_memory(true)),
        Db::with_options(own().filename(":memory:")),
        Db::with_options(own().filename("file::memory:")),
        Db::with_options(own().filename("file:x?mode=memory")),
        Db::with_options(own().filename("file:y?mode=memory&cache=shared")),
        Db::with_options("sqlite::memory:".parse().unwrap()),
    ];
    for (nth, builder) in builders.into_iter().enumerate() {
        let db = builder.max_size(1).build().unwrap();
        run(&db, "CREATE TABLE t (a INTEGER)").await;
        cenote::scope(run(&db, "PRAGMA recursive_triggers = 1")).await;
        run(&db, "INSERT INTO t VALUES (1)").await;
        drop(db.acquire().await.unwrap().lock_handle().await.unwrap());
        db.pool().invalidate();
        assert_eq!(number(&db, "SELECT count(*) FROM t").await, 1, "{nth}");
        assert!(db.pool().status().opened >= 3, "{nth}");
        let crowd = db.pool().config().max_size;
        assert_eq!(crowd, 1);
    }

    for refused in [
        Db::sqlite("sqlite:"),
        Db::with_options(own().filename("file:x?mode=memory")),
        Db::with_options(own().vfs("memdb")).max_size(1),
    ] {
        let error = refused.build().unwrap_err().to_string();
        assert!(error.contains("sqlite::memory:"), "{error}");
    }
}

#[tokio::test]
async fn a_shared_database_in_memory_is_the_same_for_all_connections() {
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
async fn readers_at_the_same_time_have_connections_of_their_own() {
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
