//! diesel's own connections, off the thread of the caller.

use std::path::Path;
use std::thread;

use cenote::{CloseReason, Lease, Pool};
use cenote_diesel::diesel::connection::{AnsiTransactionManager as Ansi, TransactionManager as _};
use cenote_diesel::diesel::connection::{InstrumentationEvent, SimpleConnection};
use cenote_diesel::diesel::result::Error;
use cenote_diesel::diesel::{self, Connection, ConnectionError, ExpressionMethods};
use cenote_diesel::diesel::{QueryDsl, RunQueryDsl, SqliteConnection};
use cenote_diesel::{Blocking, Reset};
use tempfile::TempDir;

use crate::{eventually, times_open};

diesel::table! {
    t (a) {
        a -> Integer,
    }
}

pub(crate) type Manager = Blocking<SqliteConnection>;

pub(crate) fn manager(folder: &TempDir) -> Manager {
    let file = folder.path().join("db");
    let mut own = SqliteConnection::establish(&file.to_string_lossy()).unwrap();
    let make = "pragma journal_mode = wal; create table t (a integer)";
    own.batch_execute(make).unwrap();
    Blocking::new(file.to_string_lossy())
}

pub(crate) fn rows(folder: &Path) -> Vec<i32> {
    let file = folder.join("db");
    let mut own = SqliteConnection::establish(&file.to_string_lossy()).unwrap();
    own.batch_execute("pragma busy_timeout = 30000").unwrap();
    t::table.select(t::a).order(t::a).load(&mut own).unwrap()
}

pub(crate) fn insert(connection: &mut SqliteConnection, a: i32) {
    let insert = diesel::insert_into(t::table).values(t::a.eq(a));
    insert.execute(connection).unwrap();
}

/// Returns whether a transaction is open. SQLite refuses one inside another.
pub(crate) async fn is_open(lease: &mut Lease<Manager>) -> bool {
    let asked = lease.run(|connection| connection.batch_execute("begin; rollback"));
    asked.await.is_err()
}

async fn next(pool: &Pool<Manager>, lease: Lease<Manager>) -> (Lease<Manager>, bool) {
    let before = Lease::id(&lease);
    drop(lease);
    let lease = pool.acquire().await.unwrap();
    let is_same = Lease::id(&lease) == before;
    (lease, is_same)
}

#[tokio::test]
async fn a_closure_runs_on_another_thread() {
    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    let mut lease = pool.acquire().await.unwrap();

    let (thread, all) = lease
        .run(|connection| {
            let work = connection.transaction::<_, Error, _>(|connection| {
                insert(connection, 1);
                t::table.select(t::a).load::<i32>(connection)
            });
            (thread::current().id(), work.unwrap())
        })
        .await;

    assert_ne!(thread, thread::current().id());
    assert_eq!(all, [1]);
    drop(lease);
    assert_eq!(pool.status().idle, 1, "nothing to clean");
}

#[tokio::test]
async fn a_transaction_left_open_is_rolled_back_off_thread() {
    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    let ways: [fn(&mut SqliteConnection); 3] = [
        |connection| Ansi::begin_transaction(connection).unwrap(),
        |connection| {
            Ansi::begin_transaction(connection).unwrap();
            Ansi::begin_transaction(connection).unwrap();
        },
        |connection| connection.batch_execute("begin immediate").unwrap(),
    ];
    for begin in ways {
        let mut lease = pool.acquire().await.unwrap();
        let work = lease.run(move |connection| {
            begin(connection);
            insert(connection, 1);
        });
        work.await;

        let (mut lease, is_same) = next(&pool, lease).await;

        assert!(is_same);
        assert!(!is_open(&mut lease).await);
        assert!(rows(folder.path()).is_empty());
    }
}

#[tokio::test]
async fn a_broken_transaction_manager_closes_the_connection() {
    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    let mut lease = pool.acquire().await.unwrap();
    let work = lease.run(|connection| {
        Ansi::transaction_manager_status_mut(connection).set_in_error();
    });
    work.await;

    let (_lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn a_test_transaction_is_shared_by_all_closures() {
    let folder = TempDir::new().unwrap();
    let manager = manager(&folder).custom_setup(|url| {
        let mut connection = SqliteConnection::establish(url)?;
        let begun = connection.begin_test_transaction();
        begun.map_err(ConnectionError::CouldntSetupConfiguration)?;
        Ok(connection)
    });
    let pool = crate::pool(manager, 1);
    let mut lease = pool.acquire().await.unwrap();
    let work = lease.run(|connection| {
        insert(connection, 1);
        connection
            .batch_execute("create temporary table x (a)")
            .unwrap();
        Ansi::begin_transaction(connection).unwrap();
        insert(connection, 2);
    });
    work.await;

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    let seen = lease.run(|connection| t::table.select(t::a).load::<i32>(connection));
    assert_eq!(seen.await, Ok(vec![1]), "the inner one is rolled back");
    assert!(rows(folder.path()).is_empty());
}

#[tokio::test]
async fn a_changed_session_is_closed_reset_or_kept() {
    let reset = Reset::Query("drop table temp.x".into());
    for (reset, is_kept, is_there) in [
        (Reset::Close, false, false),
        (reset, true, false),
        (Reset::Never, true, true),
    ] {
        // A database of its own: the last pool's connection locks its file while it closes.
        let folder = TempDir::new().unwrap();
        let pool = crate::pool(manager(&folder).reset(reset), 1);
        let mut lease = pool.acquire().await.unwrap();
        let change = |connection: &mut SqliteConnection| {
            connection
                .batch_execute("create temporary table x (a)")
                .unwrap();
        };
        lease.run(change).await;

        let (mut lease, is_same) = next(&pool, lease).await;

        assert_eq!(is_same, is_kept);
        let seen = lease.run(|connection| connection.batch_execute("select * from temp.x"));
        assert_eq!(seen.await.is_ok(), is_there);
    }
}

#[tokio::test]
async fn a_replaced_instrumentation_closes_the_connection() {
    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    let mut lease = pool.acquire().await.unwrap();
    let work = lease.run(|connection| {
        connection.set_instrumentation(|_: InstrumentationEvent<'_>| {});
    });
    work.await;

    let (_lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
}

#[tokio::test]
async fn a_panic_goes_to_the_caller_and_closes_the_connection() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("db");
    let pool = crate::pool(manager(&folder), 1);
    let theirs = pool.clone();

    let task = tokio::spawn(async move {
        let mut lease = theirs.acquire().await.unwrap();
        let work = lease.run(|connection| {
            connection.transaction::<(), Error, _>(|connection| {
                insert(connection, 1);
                panic!("as a closure may");
            })
        });
        work.await
    });

    let panic = task.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"as a closure may"));
    eventually("it is closed", async || times_open(&file) == 0).await;
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    let mut lease = pool.acquire().await.unwrap();
    assert!(!is_open(&mut lease).await);
    assert!(rows(folder.path()).is_empty());
}
