//! The promises to a user of a pooled connection.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;

use cenote::{CloseReason, Lease, Pool};
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS note (text TEXT)";
const SOON: Duration = Duration::from_secs(5);

/// Returns a pool with room for one connection, so that the next user gets the connection of the
/// last one.
fn pool_of_one() -> (TempDir, Pool<SqliteManager>) {
    let folder = tempfile::tempdir().unwrap();
    let manager = SqliteManager::new(folder.path().join("test.db"), SCHEMA);
    let pool = Pool::builder(manager).max_size(1).build().unwrap();
    (folder, pool)
}

async fn notes(connection: &mut Connection) -> i64 {
    let count = "SELECT count(*) FROM note";
    let counting = connection.run(|db| db.query_row(count, [], |row| row.get(0)));
    counting.await.unwrap()
}

#[tokio::test]
async fn a_transaction_left_open_is_rolled_back_before_the_next_user() {
    let (_folder, pool) = pool_of_one();
    let mut first = pool.acquire().await.unwrap();
    let (id, half) = (
        Lease::id(&first),
        "BEGIN; INSERT INTO note VALUES ('half done')",
    );
    first.run(|db| db.execute_batch(half)).await.unwrap();
    assert_eq!(notes(&mut first).await, 1);

    drop(first);
    let mut second = pool.acquire().await.unwrap();

    assert_eq!(Lease::id(&second), id);
    assert_eq!(notes(&mut second).await, 0);
    let autocommit = second.run(|db| Ok(db.is_autocommit())).await.unwrap();
    assert!(autocommit);
}

#[tokio::test]
async fn a_statement_left_running_is_over_before_the_next_user() {
    let (_folder, pool) = pool_of_one();
    let mut first = pool.acquire().await.unwrap();
    let (go_on, told_to) = mpsc::channel::<()>();
    let slow = first.run(move |db| {
        told_to.recv().unwrap();
        db.execute_batch("BEGIN; INSERT INTO note VALUES ('too late')")
    });

    assert!(timeout(Duration::ZERO, slow).await.is_err());
    drop(first);
    assert!(pool.try_acquire().unwrap().is_none());
    go_on.send(()).unwrap();
    let mut second = pool.acquire().await.unwrap();

    assert_eq!(notes(&mut second).await, 0);
    assert_eq!(Lease::id(&second), 1);
}

#[tokio::test]
async fn a_connection_whose_thread_died_is_replaced() {
    let (_folder, pool) = pool_of_one();
    let mut first = pool.acquire().await.unwrap();

    // A panic that is not printed.
    let dying = first.run::<()>(|_| resume_unwind(Box::new("a bug in a job")));
    assert!(matches!(dying.await, Err(SqliteError::Gone)));
    drop(first);
    let mut second = pool.acquire().await.unwrap();

    assert_eq!(Lease::id(&second), 2);
    assert_eq!(notes(&mut second).await, 0);
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn closing_ends_the_thread() {
    thread_local!(static LIFE: RefCell<Option<Arc<()>>> = const { RefCell::new(None) });
    let (_folder, pool) = pool_of_one();
    let life = Arc::new(());
    let held = Arc::clone(&life);
    let mut connection = pool.acquire().await.unwrap();
    connection
        .run(|_| {
            LIFE.set(Some(held));
            Ok(())
        })
        .await
        .unwrap();
    drop(connection);
    assert_eq!(Arc::strong_count(&life), 2);

    let left_out = pool.close_within(SOON).await;

    assert!(left_out.is_empty());
    assert_eq!(Arc::strong_count(&life), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_an_error_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let manager = SqliteManager::new(folder.path().join("missing/test.db"), SCHEMA);
    let pool = Pool::builder(manager).build().unwrap();

    let error = pool.acquire().await.err().unwrap();

    let cause = error.source().unwrap();
    assert!(cause.is::<SqliteError>(), "{cause:?}");
    assert!(cause.source().unwrap().is::<rusqlite::Error>());
}
