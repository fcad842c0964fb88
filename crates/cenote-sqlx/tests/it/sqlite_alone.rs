//! Tests for SQLite alone: its defaults, and one writer among many readers.

use std::sync::Arc;
use std::time::Duration;

use cenote_sqlx::{BuildError, Class, Db};
use sqlx::Sqlite;

use crate::world::sqlite::{self as world, number, run};

async fn text(db: &Db<Sqlite>, sql: &'static str) -> String {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn a_url_gets_defaults_for_concurrency() {
    let (builder, _home) = world::builder();
    let db = builder.build().unwrap();

    assert_eq!(text(&db, "PRAGMA journal_mode").await, "wal");
    assert_eq!(number(&db, "PRAGMA foreign_keys").await, 1);
    assert_eq!(number(&db, "PRAGMA busy_timeout").await, 5000);
    assert_eq!(number(&db, "PRAGMA synchronous").await, 1);
}

#[tokio::test]
async fn options_of_sqlx_are_not_changed() {
    let home = tempfile::tempdir().unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(home.path().join("own.db"))
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Delete)
        .busy_timeout(Duration::from_millis(815));
    let db = Db::with_options(options).build().unwrap();

    assert_eq!(text(&db, "PRAGMA journal_mode").await, "delete");
    assert_eq!(number(&db, "PRAGMA busy_timeout").await, 815);
}

#[tokio::test]
async fn a_database_in_memory_has_one_connection_and_keeps_it() {
    for url in [
        "sqlite::memory:",
        "sqlite://:memory:",
        "sqlite://any?mode=memory",
    ] {
        let refused = Db::sqlite(url).build().unwrap_err();
        assert!(
            matches!(refused, BuildError::InMemory { max_size: 10 }),
            "{url}: {refused:?}"
        );
        assert!(
            refused
                .to_string()
                .contains("set `max_size` to 1, share it"),
            "{refused}"
        );
    }

    let db = Db::sqlite("sqlite::memory:?cenote.max_size=1")
        .build()
        .unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_never_see_a_locked_database() {
    let (builder, _home) = world::builder();
    // Without a busy timeout every collision would be an error at once.
    let db = builder
        .max_size(8)
        .acquire_timeout(Duration::from_secs(60))
        .setting("PRAGMA busy_timeout = 0");
    let db = Arc::new(db.build().unwrap());
    run(&db, "CREATE TABLE t (a INTEGER)").await;

    let writers = (0..100).map(|nth| {
        let db = db.clone();
        tokio::spawn(async move {
            if nth % 2 == 0 {
                return sqlx::query("INSERT INTO t VALUES (1)")
                    .execute(&*db)
                    .await
                    .map(drop);
            }
            let work = db.transaction(|| async {
                number(&db, "SELECT count(*) FROM t").await;
                sqlx::query("INSERT INTO t VALUES (1)")
                    .execute(&*db)
                    .await
                    .map(drop)
            });
            work.await
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }

    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 100);
}

#[tokio::test]
async fn readers_do_not_wait_for_a_writer() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(4).build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;
    let mut writing = db.begin().await.unwrap();
    sqlx::query("INSERT INTO t VALUES (1)")
        .execute(&mut writing)
        .await
        .unwrap();

    let reading = tokio::time::timeout(
        Duration::from_secs(2),
        number(&db, "SELECT count(*) FROM t"),
    );

    assert_eq!(reading.await.expect("the reader waits for the writer"), 0);
    writing.commit().await.unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 1);
}

#[tokio::test]
async fn no_read_waits_in_the_line_of_writers() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(4).build().unwrap();
    run(&db, "CREATE TABLE t (a INTEGER, updated TEXT)").await;
    let opened = db.pool().status().opened;
    let _writing = db.begin().await.unwrap();

    for read in [
        "SELECT /* hot path */ a FROM t",
        "-- name: all\nSELECT a FROM t",
        "SELECT a -- c\nFROM t",
        "SELECT replace(updated,'a','b') FROM t",
        "SELECT a FROM t WHERE updated <> 'delete'",
        "PRAGMA table_info(t)",
        "PRAGMA journal_mode",
        "EXPLAIN QUERY PLAN SELECT a FROM t",
        "EXPLAIN INSERT INTO t (a) VALUES (1)",
        "WITH x AS (SELECT a FROM t) SELECT * FROM x",
        "VALUES (1), (2)",
    ] {
        let reading = sqlx::query(read).fetch_all(&db);
        let reading = tokio::time::timeout(Duration::from_secs(2), reading).await;
        let rows = reading.unwrap_or_else(|_| panic!("{read} waits for the writer"));
        rows.unwrap_or_else(|error| panic!("{read}: {error}"));
    }

    assert!(
        db.pool().status().opened <= opened + 1,
        "no connection was closed"
    );
}

#[tokio::test]
async fn the_timeout_of_a_writer_names_the_pool_of_writers() {
    let (builder, _home) = world::builder();
    let db = builder
        .acquire_timeout(Duration::from_secs(1))
        .name("books")
        .build()
        .unwrap();
    let _writing = db.begin().await.unwrap();

    let error = sqlx::query("CREATE TABLE t (a INTEGER)")
        .execute(&db)
        .await
        .unwrap_err();

    let shown = error.to_string();
    assert_eq!(Db::<Sqlite>::classify(&error), Class::Refused);
    assert!(
        shown.contains("books (writer)") && shown.contains("1 of 1 in use"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_dropped_transaction_gives_the_right_to_write_back() {
    let (builder, _home) = world::builder();
    let db = builder
        .acquire_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    run(&db, "CREATE TABLE t (a INTEGER)").await;
    for _ in 0..5 {
        let mut dropped = db.begin().await.unwrap();
        sqlx::query("INSERT INTO t VALUES (1)")
            .execute(&mut dropped)
            .await
            .unwrap();
        drop(dropped);
    }

    run(&db, "INSERT INTO t VALUES (2)").await;

    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 1);
}

#[tokio::test]
async fn a_dropped_statement_is_stopped_and_its_connection_kept() {
    let (builder, _home) = world::builder();
    let db = builder
        .max_size(1)
        .acquire_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let endless =
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";

    let dropped = tokio::time::timeout(Duration::from_millis(100), number(&db, endless));
    assert!(dropped.await.is_err());

    assert_eq!(number(&db, "SELECT 815").await, 815);
    assert_eq!(db.pool().status().opened, 1, "the connection is kept");
}

#[tokio::test]
async fn nothing_is_written_after_the_database_rolled_a_transaction_back() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(1).build().unwrap();
    run(&db, "CREATE TABLE t (a BLOB)").await;

    let work = db.transaction(async || {
        sqlx::query("INSERT INTO t VALUES (1)").execute(&db).await?;
        sqlx::query("PRAGMA max_page_count = 3")
            .execute(&db)
            .await?;
        let full = sqlx::query("INSERT INTO t VALUES (zeroblob(1000000))")
            .execute(&db)
            .await;
        assert_eq!(
            full.unwrap_err()
                .as_database_error()
                .unwrap()
                .code()
                .unwrap(),
            "13"
        );
        assert!(
            sqlx::query("INSERT INTO t VALUES (2)")
                .execute(&db)
                .await
                .is_err()
        );
        Ok::<_, sqlx::Error>(())
    });

    assert!(work.await.is_err());
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);
}
