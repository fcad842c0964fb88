//! r2d2_sqlite on a file. A SQLite connection has no server that could kill it.

use cenote::Pool;
use cenote_bridge::R2d2;
use cenote_testkit::conformance::Conformance;
use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::times_open;

#[tokio::test]
async fn an_r2d2_sqlite_connection_is_lent_and_lent_again() {
    let folder = TempDir::new().unwrap();
    let manager = SqliteConnectionManager::file(folder.path().join("db"));
    let pool = Pool::builder(R2d2::new(manager))
        .max_size(1)
        .build()
        .unwrap();
    let lease = pool.acquire().await.unwrap();
    lease
        .execute_batch("create temp table kept as select 7 as n")
        .unwrap();
    drop(lease);

    let lease = pool.acquire().await.unwrap();
    let kept: i64 = lease
        .query_row("select n from kept", [], |row| row.get(0))
        .unwrap();

    assert_eq!(kept, 7, "it is the same connection, as in r2d2");
}

#[tokio::test]
async fn an_r2d2_sqlite_connection_is_closed_with_its_pool() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("db");
    let pool = Pool::builder(R2d2::new(SqliteConnectionManager::file(&file)));
    let pool = pool.build().unwrap();
    pool.acquire()
        .await
        .unwrap()
        .execute_batch("create table t (n)")
        .unwrap();
    assert_eq!(times_open(&file), 1);

    let left = pool.close_within(std::time::Duration::from_secs(10)).await;

    assert!(left.is_empty());
    assert_eq!(times_open(&file), 0);
}

#[tokio::test]
async fn r2d2_sqlite_conforms() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("db");
    let manager = SqliteConnectionManager::file(&file).with_init(|connection: &mut Connection| {
        connection.execute_batch("create table if not exists t (n)")
    });

    Conformance::new(R2d2::new(manager))
        .count(async move || times_open(&file))
        .run()
        .await;
}
