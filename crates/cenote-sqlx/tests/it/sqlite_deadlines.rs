//! SQLite: a write waits in two lines, for its turn and for a connection, and has one deadline.
//!
//! In real time: the driver works on threads that a paused clock does not know.

use std::time::Duration;

use cenote::BindError;
use cenote_sqlx::{Db, Transaction, pool_error};
use cenote_testkit::clock::now;
use sqlx::{Error, Sqlite};
use tokio::time::sleep;

use crate::world::sqlite as world;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(2);

/// How long it waits for its turn. With a limit for each of its waits it would take this longer.
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

/// Runs `call` while `writing` has its turn. After that another caller is in front of it in the
/// line for the only connection.
async fn delayed<T>(
    db: &Db<Sqlite>,
    writing: Transaction<'static, Sqlite>,
    call: impl Future<Output = Result<T, Error>>,
) -> Error {
    let begun = now();
    let reader = tokio::spawn({
        let db = db.clone();
        // Longer than any call, and never used: it is aborted.
        async move {
            (
                db.pool().acquire_timeout(None).await.unwrap(),
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
    assert!(took > TURN, "it did not wait for its turn: {took:?}");
    assert!(took < LIMIT + TURN / 2, "two deadlines in a row: {took:?}");
    called.err().expect("there is no connection for it")
}

/// Did it time out at the connections, and not in the line of writers?
fn assert_timed_out_at_connections(db: &Db<Sqlite>, error: &Error) {
    match pool_error(error) {
        Some(BindError::Acquire(cenote::AcquireError::TimedOut(seen))) => {
            assert_eq!(seen.pool(), db.pool().name());
        }
        other => panic!("it was to time out: {other:?}"),
    }
}

#[tokio::test]
async fn a_statement_that_waits_for_its_turn_and_then_for_a_connection_has_one_deadline() {
    let (db, _home) = database(1).await;
    let writing = db.begin().await.unwrap();

    let error = delayed(&db, writing, sqlx::query(INSERT).execute(&db)).await;

    assert_timed_out_at_connections(&db, &error);
}

#[tokio::test]
async fn a_transaction_that_waits_for_its_turn_and_then_for_a_connection_has_one_deadline() {
    let (db, _home) = database(1).await;
    let writing = db.begin().await.unwrap();

    let error = delayed(&db, writing, db.begin()).await;

    assert_timed_out_at_connections(&db, &error);
}

#[tokio::test]
async fn a_write_that_waits_for_its_turn_and_then_for_the_scopes_connection_has_one_deadline() {
    let (db, _home) = database(2).await;
    let writing = db.begin().await.unwrap();
    let begun = now();

    let (written, ()) = cenote::scope(async {
        tokio::join!(sqlx::query(INSERT).execute(&db), async {
            // Its session was changed, so it is pinned from here on. It is in use for longer than
            // the write may take.
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
        other => panic!("it was to find its connection in use: {other:?}"),
    }
}

#[tokio::test]
async fn the_time_of_a_transaction_begins_when_it_is_awaited() {
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
