//! Callers that give up while their closure runs.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use cenote::{CloseReason, Lease, Pool};
use cenote_diesel::diesel::SqliteConnection;
use cenote_diesel::diesel::connection::{AnsiTransactionManager as Ansi, TransactionManager as _};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::blocking::{Manager, insert, is_open, manager, rows};
use crate::{LIMIT, eventually, times_open};

const SOON: Duration = Duration::from_millis(50);

/// Begins a closure that waits for a word, and gives up.
async fn give_up(lease: &mut Lease<Manager>, then: fn(&mut SqliteConnection)) -> Sender<()> {
    let (go, may_go): (_, Receiver<()>) = mpsc::channel();
    let (begins, begun) = tokio::sync::oneshot::channel();
    let work = lease.run(move |connection| {
        Ansi::begin_transaction(connection).unwrap();
        insert(connection, 1);
        begins.send(()).unwrap();
        may_go.recv().unwrap();
        then(connection);
    });
    tokio::select! {
        biased;
        () = work => panic!("it waits"),
        told = begun => told.unwrap(),
    }
    go
}

#[tokio::test]
async fn a_connection_is_not_lent_before_its_closure_is_done() {
    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    let mut lease = pool.acquire().await.unwrap();
    let id = Lease::id(&lease);
    let go = give_up(&mut lease, |connection| insert(connection, 2)).await;
    drop(lease);

    assert!(timeout(SOON, pool.acquire()).await.is_err());
    go.send(()).unwrap();
    let mut lease = pool.acquire().await.unwrap();

    assert_eq!(Lease::id(&lease), id, "it is kept");
    assert!(!is_open(&mut lease).await, "and rolled back");
    assert!(rows(folder.path()).is_empty());
}

#[tokio::test]
async fn the_next_call_on_a_lease_waits_for_the_one_that_was_dropped() {
    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    let mut lease = pool.acquire().await.unwrap();
    let go = give_up(&mut lease, |connection| {
        Ansi::commit_transaction(connection).unwrap()
    })
    .await;

    let second = lease.run(|connection| insert(connection, 2));
    assert!(timeout(SOON, second).await.is_err(), "nor has it begun");
    go.send(()).unwrap();
    lease.run(|connection| insert(connection, 3)).await;

    assert_eq!(rows(folder.path()), [1, 3]);
}

#[tokio::test]
async fn a_closure_that_panics_after_its_caller_gave_up_closes_the_connection() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("db");
    let pool = crate::pool(manager(&folder), 1);
    let mut lease = pool.acquire().await.unwrap();
    let id = Lease::id(&lease);
    let go = give_up(&mut lease, |_| panic!("as a closure may")).await;
    drop(lease);

    go.send(()).unwrap();
    let mut lease = pool.acquire().await.unwrap();

    assert_ne!(Lease::id(&lease), id);
    assert!(!is_open(&mut lease).await);
    eventually("it is closed", async || times_open(&file) == 1).await;
    assert!(rows(folder.path()).is_empty());
}

/// The pool goes on without the connection. The thread closes it when the closure is done.
#[tokio::test]
async fn a_closure_that_hangs_does_not_block_the_pool() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("db");
    let pool = Pool::builder(manager(&folder)).max_size(1);
    let pool = pool.clean_timeout(SOON).close_timeout(SOON);
    let pool = pool.acquire_timeout(LIMIT).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let go = give_up(&mut lease, |connection| insert(connection, 2)).await;
    drop(lease);

    let lease = pool.acquire().await.unwrap();

    assert_eq!(pool.status().closes.by(CloseReason::Broken), 0);
    assert_eq!(times_open(&file), 2, "one is stuck, one is lent");
    go.send(()).unwrap();
    eventually("it is closed", async || times_open(&file) == 1).await;
    assert!(rows(folder.path()).is_empty());
    drop(lease);
}

#[tokio::test]
async fn a_call_may_be_dropped_at_every_await() {
    use cenote_testkit::conformance::cut;

    let folder = TempDir::new().unwrap();
    let pool = crate::pool(manager(&folder), 1);
    for polls in 0..100 {
        let mut lease = pool.acquire().await.unwrap();
        let work = lease.run(|connection| {
            Ansi::begin_transaction(connection).unwrap();
            insert(connection, 1);
        });
        let ended = cut(polls, work).await;
        drop(lease);

        let mut lease = pool.acquire().await.unwrap();

        assert!(!is_open(&mut lease).await, "dropped at poll {polls}");
        assert!(rows(folder.path()).is_empty());
        if ended.is_some() {
            return;
        }
    }
    panic!("it never ends");
}
