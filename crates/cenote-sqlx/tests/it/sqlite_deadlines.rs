//! A write on SQLite waits for the right to write and then for a connection, within one deadline.
//!
//! The tests run in real time, because the driver has threads that a paused clock does not stop.

use std::time::Duration;

use cenote::scope::BindError;
use cenote_sqlx::{Db, Transaction, pool_error};
use cenote_testkit::clock::now;
use sqlx::{Error, Sqlite};
use tokio::time::sleep;

use crate::world::sqlite as world;

/// The time limit of a call.
const LIMIT: Duration = Duration::from_secs(2);

/// How long a call waits for the right to write. With a limit for each of its waits a call would
/// take this much longer.
const TURN: Duration = Duration::from_millis(1_600);

const INSERT: &str = "INSERT INTO t VALUES (1)";

async fn database(max_size: usize) -> (Db<Sqlite>, world::Home) {
    let (builder, home) = world::builder();
    let builder = builder.max_size(max_size).acquire_timeout(LIMIT);
    let db = builder.build().unwrap();
    let table = sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db);
    table.await.unwrap();
    (db, home)
}

/// Runs `call` while `writing` has the right to write. Afterwards another caller is ahead of it in
/// the queue for the only connection.
async fn delayed<T>(
    db: &Db<Sqlite>,
    writing: Transaction<'static, Sqlite>,
    call: impl Future<Output = Result<T, Error>>,
) -> Error {
    let begun = now();
    let reader = tokio::spawn({
        let db = db.clone();
        // Longer than any call. The task is aborted.
        async move {
            (
                db.pool().acquire_within(None).await.unwrap(),
                sleep(4 * LIMIT).await,
            )
        }
    });
    let turn = async {
        sleep(TURN).await;
        writing.commit().await.unwrap();
    };

    let (called, ()) = tokio::join!(call, turn);

    let took = begun.elapsed();
    reader.abort();
    assert!(
        took > TURN,
        "the call did not wait for the right to write: {took:?}"
    );
    assert!(took < LIMIT + TURN / 2, "two deadlines in a row: {took:?}");
    called.err().expect("a connection was free")
}

/// Asserts that the call timed out in the queue for connections, not in that of writers.
fn assert_timed_out_at_connections(db: &Db<Sqlite>, error: &Error) {
    match pool_error(error) {
        Some(BindError::Acquire(cenote::AcquireError::TimedOut(seen))) => {
            assert_eq!(seen.pool(), db.pool().name());
        }
        other => panic!("not a timeout: {other:?}"),
    }
}

#[tokio::test]
async fn a_statement_has_one_deadline_for_the_right_to_write_and_for_a_connection() {
    let (db, _home) = database(1).await;
    let writing = db.begin().await.unwrap();

    let error = delayed(&db, writing, sqlx::query(INSERT).execute(&db)).await;

    assert_timed_out_at_connections(&db, &error);
}

#[tokio::test]
async fn a_transaction_has_one_deadline_for_the_right_to_write_and_for_a_connection() {
    let (db, _home) = database(1).await;
    let writing = db.begin().await.unwrap();

    let error = delayed(&db, writing, db.begin()).await;

    assert_timed_out_at_connections(&db, &error);
}

#[tokio::test]
async fn a_write_has_one_deadline_for_the_right_to_write_and_for_the_pinned_connection() {
    let (db, _home) = database(2).await;
    let writing = db.begin().await.unwrap();
    let begun = now();

    let (written, ()) = cenote::scope(async {
        tokio::join!(sqlx::query(INSERT).execute(&db), async {
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
