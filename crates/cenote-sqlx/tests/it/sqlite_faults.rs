//! Faults of SQLite: a file that is locked, missing, replaced, or not a database.

use std::path::PathBuf;
use std::time::Duration;

use cenote_sqlx::{Class, Db};
use cenote_testkit::clock::timed;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Sqlite};
use tempfile::TempDir;
use tokio::time::sleep;

const MAX_SIZE: usize = 3;

/// A database with a table, and the name of its file.
async fn shop(mode: &str, patience: u32) -> (Db<Sqlite>, PathBuf, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("shop.db");
    let db = Db::sqlite(format!("sqlite://{}?mode={mode}", file.display()))
        .max_size(MAX_SIZE)
        .acquire_timeout(Duration::from_secs(2))
        .setting(format!("PRAGMA busy_timeout = {patience}"))
        .build()
        .unwrap();
    if mode == "rwc" {
        run(&db, "CREATE TABLE t (a INTEGER)").await.unwrap();
    }
    (db, file, home)
}

async fn run(db: &Db<Sqlite>, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(sql).execute(db).await.map(drop)
}

async fn count(db: &Db<Sqlite>) -> Result<i64, sqlx::Error> {
    let sql = "SELECT count(*) FROM t";
    sqlx::query_scalar(sql).fetch_one(db).await
}

/// A connection of another program, which ignores the queue of writers.
async fn foreign(file: &std::path::Path, sql: &'static str) -> SqliteConnection {
    let url = format!("sqlite://{}", file.display());
    let mut foreign = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut foreign).await.unwrap();
    foreign
}

/// Asserts that no connection is in use, and that all can be acquired.
async fn assert_full_service(db: &Db<Sqlite>) {
    let seen = db.pool().status();
    assert_eq!(seen.in_use + seen.waiting, 0, "{seen:?}");
    let mut all = Vec::new();
    for _ in 0..MAX_SIZE {
        let mut lease = db.acquire().await.unwrap();
        sqlx::query("SELECT count(*) FROM t")
            .execute(&mut lease)
            .await
            .unwrap();
        all.push(lease);
    }
}

#[tokio::test]
async fn a_foreign_writer_is_a_conflict_and_readers_go_on() {
    let (db, file, _home) = shop("rwc", 50).await;
    let foreign = foreign(&file, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").await;

    let (error, took) = timed(run(&db, "INSERT INTO t VALUES (2)")).await;
    let begun = db.begin().await;

    let error = error.unwrap_err();
    assert_eq!(Db::<Sqlite>::classify(&error), Class::Conflict, "{error}");
    assert!(error.to_string().contains("database is locked"), "{error}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(Db::<Sqlite>::classify(&begun.unwrap_err()), Class::Conflict);
    assert_eq!(count(&db).await.unwrap(), 0);
    drop(foreign);
    run(&db, "INSERT INTO t VALUES (2)").await.unwrap();
    assert_eq!(
        count(&db).await.unwrap(),
        1,
        "the row of the foreign writer was undone"
    );
    assert_eq!(db.pool().status().closes.by(cenote::CloseReason::Broken), 0);
    assert_full_service(&db).await;
}

#[tokio::test]
async fn a_write_waits_for_a_foreign_writer() {
    let (db, file, _home) = shop("rwc", 5000).await;
    let foreign = foreign(&file, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").await;

    let leave = async {
        sleep(Duration::from_millis(100)).await;
        drop(foreign);
    };
    let (written, ()) = tokio::join!(run(&db, "INSERT INTO t VALUES (2)"), leave);

    written.unwrap();
    assert_full_service(&db).await;
}

#[tokio::test]
async fn an_open_that_finds_a_foreign_lock_fails_and_the_next_one_succeeds() {
    let (db, file, _home) = shop("rwc", 50).await;
    db.pool().close_within(Duration::from_secs(5)).await;
    let alone = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; INSERT INTO t VALUES (1)";
    let foreign = foreign(&file, alone).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&file)
        .busy_timeout(Duration::from_millis(50))
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    let db = Db::with_options(options)
        .max_size(MAX_SIZE)
        .build()
        .unwrap();

    let error = db.acquire().await.unwrap_err();

    assert_eq!(Db::<Sqlite>::classify(&error), Class::Refused, "{error}");
    assert!(error.to_string().contains("database is locked"), "{error}");
    foreign.close().await.unwrap();
    assert_full_service(&db).await;
}

#[tokio::test]
async fn a_missing_file_is_an_error_until_it_is_created() {
    let (db, file, _home) = shop("rw", 50).await;

    let error = db.acquire().await.unwrap_err();

    let text = error.to_string();
    assert!(text.contains("unable to open database file"), "{text}");
    let other = Db::sqlite(format!("sqlite://{}?mode=rwc", file.display()));
    let other = other.build().unwrap();
    run(&other, "CREATE TABLE t (a INTEGER)").await.unwrap();
    assert_full_service(&db).await;
}

/// Removes the file, its log and its shared memory.
fn remove(file: &std::path::Path) {
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", file.display())).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_was_replaced_is_noticed_by_the_next_check() {
    let (db, file, _home) = shop("rwc", 50).await;
    db.pool().close_within(Duration::from_secs(5)).await;
    let url = format!("sqlite://{}", file.display());
    let db = Db::sqlite(url)
        .max_size(MAX_SIZE)
        .check_after_idle(Duration::ZERO);
    let db = db.build().unwrap();
    run(&db, "INSERT INTO t VALUES (1)").await.unwrap();

    remove(&file);
    let error = run(&db, "INSERT INTO t VALUES (2)").await.unwrap_err();

    let text = error.to_string();
    assert!(text.contains("unable to open database file"), "{text}");
    let closes = db.pool().status().closes;
    assert_eq!(closes.by(cenote::CloseReason::FailedCheck), 1, "{closes:?}");
    let other = Db::sqlite(format!("sqlite://{}?mode=rwc", file.display()));
    let other = other.build().unwrap();
    run(&other, "CREATE TABLE t (a INTEGER)").await.unwrap();
    run(&db, "INSERT INTO t VALUES (3)").await.unwrap();
    assert_eq!(
        count(&other).await.unwrap(),
        1,
        "both handles use the new file"
    );
    assert_full_service(&db).await;
}

#[tokio::test]
async fn a_file_that_was_overwritten_is_an_error_until_it_is_restored() {
    let (db, file, _home) = shop("rwc", 50).await;
    run(&db, "INSERT INTO t VALUES (1)").await.unwrap();
    db.pool().invalidate();
    // When the last connection is closed, the log is written to the file.
    let open = || db.pool().status().total + db.pool().status().closing;
    while open() > 0 {
        sleep(Duration::from_millis(5)).await;
    }
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, vec![7; good.len()]).unwrap();

    let error = run(&db, "SELECT 1 FROM t").await.unwrap_err();

    assert!(
        error.to_string().contains("file is not a database"),
        "{error}"
    );
    std::fs::write(&file, good).unwrap();
    assert_eq!(count(&db).await.unwrap(), 1);
    assert_full_service(&db).await;
}
