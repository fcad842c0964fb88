//! A write on SQLite has one deadline. A text that also changes the session waits for the right to
//! write and then for a connection, within that deadline.
//!
//! The tests run in real time, because the driver has threads that a paused clock does not stop.

use std::time::Duration;

use cenote::scope::BindError;
use cenote_sqlx::{Db, pool_error};
use cenote_testkit::clock::now;
use sqlx::Sqlite;
use tokio::time::sleep;

use crate::world::sqlite as world;

/// The time limit of a call.
const LIMIT: Duration = Duration::from_secs(2);

/// How long a call waits for the right to write. With a limit for each of its waits a call would
/// take this much longer.
const TURN: Duration = Duration::from_millis(1_600);

/// Such a text is not for the connection of the writer.
const BOTH: &str = "CREATE TEMP TABLE other (a INTEGER); INSERT INTO t VALUES (1)";

async fn database(max_size: usize) -> (Db<Sqlite>, world::Home) {
    let (builder, home) = world::builder();
    let builder = builder.max_size(max_size).acquire_timeout(LIMIT);
    let db = builder.build().unwrap();
    let table = sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db);
    table.await.unwrap();
    (db, home)
}

#[tokio::test]
async fn a_text_that_changes_the_session_has_one_deadline_for_its_turn_and_for_a_connection() {
    let (db, _home) = database(2).await;
    let writing = db.begin().await.unwrap();
    let readers = [db.acquire().await.unwrap(), db.acquire().await.unwrap()];
    let begun = now();
    let turn = async {
        sleep(TURN).await;
        writing.commit().await.unwrap();
    };

    let (called, ()) = tokio::join!(sqlx::raw_sql(BOTH).execute(&db), turn);

    let took = begun.elapsed();
    drop(readers);
    assert!(took > TURN, "it did not wait for its turn: {took:?}");
    assert!(took < LIMIT + TURN / 2, "two deadlines in a row: {took:?}");
    match pool_error(&called.unwrap_err()) {
        Some(BindError::Acquire(cenote::AcquireError::TimedOut(seen))) => {
            assert_eq!(seen.pool(), db.pool().name());
        }
        other => panic!("not a timeout: {other:?}"),
    }
}

#[tokio::test]
async fn a_write_has_one_deadline_for_the_right_to_write_and_for_the_pinned_connection() {
    let (db, _home) = database(2).await;
    let writing = db.begin().await.unwrap();
    let begun = now();

    let (written, ()) = cenote::scope(async {
        tokio::join!(sqlx::raw_sql(BOTH).execute(&db), async {
            // The session is changed, so its connection is pinned. It is in use for longer than the
            // write may take.
            let mut lease = db.acquire().await.unwrap();
            let change = sqlx::query("CREATE TEMP TABLE mine (a INTEGER)");
            change.execute(&mut lease).await.unwrap();
            drop(lease);
            let pinned = db.acquire().await.unwrap();
            sleep(TURN).await;
            writing.commit().await.unwrap();
            sleep((LIMIT + TURN).saturating_sub(begun.elapsed())).await;
            drop(pinned);
        })
    })
    .await;

    let error = written.unwrap_err();
    match pool_error(&error) {
        Some(BindError::InUse { waited, .. }) => {
            assert!(*waited < LIMIT / 2, "a deadline of its own: {waited:?}");
        }
        other => panic!("the pinned connection was not in use: {other:?}"),
    }
}

#[tokio::test]
async fn the_deadline_of_a_transaction_counts_from_its_first_poll() {
    let (builder, _home) = world::builder();
    let limit = Duration::from_millis(500);
    let db = builder.max_size(1).acquire_timeout(limit).build().unwrap();
    let beginning = db.begin();
    let reading = db.acquire().await.unwrap();
    sleep(limit).await;

    let (begun, ()) = tokio::join!(beginning, async {
        sleep(limit / 5).await;
        drop(reading);
    });

    begun.unwrap().rollback().await.unwrap();
}
