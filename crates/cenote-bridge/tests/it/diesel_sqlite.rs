//! diesel's manager for r2d2, on a file of SQLite.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote::{CloseReason, Pool};
use cenote_bridge::{R2d2, R2d2Connection};
use cenote_testkit::conformance::Conformance;
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::r2d2::ConnectionManager;
use diesel::sql_types::Integer;
use diesel::{Connection, RunQueryDsl, SqliteConnection};
use tempfile::TempDir;

use crate::times_open;

type Diesel = R2d2<ConnectionManager<SqliteConnection>>;

fn manager(folder: &TempDir) -> Diesel {
    let file = folder.path().join("db");
    R2d2::new(ConnectionManager::new(file.to_string_lossy()))
}

fn begin(connection: &mut SqliteConnection) {
    AnsiTransactionManager::begin_transaction(connection).unwrap();
}

fn in_transaction(connection: &mut SqliteConnection) -> bool {
    AnsiTransactionManager::is_broken_transaction_manager(connection)
}

#[tokio::test]
async fn a_diesel_connection_is_lent_and_lent_again() {
    let folder = TempDir::new().unwrap();
    let pool = Pool::builder(manager(&folder)).max_size(1).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    lease
        .batch_execute("create temp table kept (n integer)")
        .unwrap();
    drop(lease);

    let mut lease = pool.acquire().await.unwrap();
    let done = lease.transaction(|connection| {
        diesel::sql_query("insert into kept values (?)")
            .bind::<Integer, _>(7)
            .execute(connection)
    });

    assert_eq!(done, Ok(1));
}

#[tokio::test]
async fn a_diesel_connection_with_an_open_transaction_is_not_lent_again() {
    let folder = TempDir::new().unwrap();
    let pool = Pool::builder(manager(&folder)).max_size(1).build().unwrap();

    begin(&mut pool.acquire().await.unwrap());

    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert!(!in_transaction(&mut pool.acquire().await.unwrap()));
}

/// diesel asks whether the thread panics. The answer is right only on the thread of the user.
#[tokio::test]
async fn a_diesel_connection_whose_user_panics_is_not_lent_again() {
    let folder = TempDir::new().unwrap();
    let pool = Pool::builder(manager(&folder)).max_size(1).build().unwrap();
    let lease = pool.acquire().await.unwrap();

    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _lease = lease;
        panic!("as in a user that fails");
    }));

    assert!(panicked.is_err());
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn diesel_sqlite_conforms() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("db");

    Conformance::new(manager(&folder))
        .dirty(
            async |connection: &mut R2d2Connection<SqliteConnection>| begin(connection),
            async |connection: &mut R2d2Connection<SqliteConnection>| in_transaction(connection),
        )
        .count(async move || times_open(&file))
        .run()
        .await;
}
