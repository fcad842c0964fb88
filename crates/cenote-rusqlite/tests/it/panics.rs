//! Closures that panic: the caller is told, and the next one has another connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote::{AcquireError, CloseReason, Lease};
use cenote_rusqlite::rusqlite;
use cenote_rusqlite::{Class, Error};

use crate::{Disk, eventually, insert, rows, times_open};

#[tokio::test]
async fn a_panic_in_a_read_is_told() {
    let disk = Disk::new("panics-1");
    let db = disk.db().await;

    let told = db.read(|_| -> rusqlite::Result<()> { panic!("no {}", "tea") });

    let error = told.await.unwrap_err();
    assert!(
        matches!(&error, Error::Panicked(text) if text == "no tea"),
        "{error}"
    );
    assert_eq!(error.class(), Class::Broken);
    assert_eq!(rows(&db).await, 0);
    assert_eq!(db.pool().status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn a_panic_in_a_write_rolls_back() {
    let disk = Disk::new("panics-2");
    let db = disk.db().await;

    let told = db.write(|tx| -> rusqlite::Result<()> {
        insert(tx, 1)?;
        tx.set_drop_behavior(rusqlite::DropBehavior::Commit);
        panic!("no tea")
    });

    assert!(matches!(told.await, Err(Error::Panicked(text)) if text == "no tea"));
    db.write(|tx| insert(tx, 2)).await.unwrap();
    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn a_lease_whose_closure_has_panicked_is_lost() {
    let disk = Disk::new("panics-3");
    let db = disk.db().await;
    let mut lease = db.acquire().await.unwrap();
    let id = Lease::id(&lease);
    let told = lease.call(|_| -> rusqlite::Result<()> { panic!("no tea") });
    assert!(matches!(told.await, Err(Error::Panicked(_))));

    let lost = lease.call(|_| Ok::<_, rusqlite::Error>(())).await;

    assert!(matches!(lost, Err(Error::Lost)));
    drop(lease);
    assert_ne!(Lease::id(&db.acquire().await.unwrap()), id);
}

#[tokio::test]
async fn the_connection_of_a_panic_is_closed_before_its_lease_ends() {
    let disk = Disk::new("panics-4");
    let db = disk.builder().build().unwrap();
    let mut lease = db.acquire().await.unwrap();
    assert_eq!(times_open(&disk.path), 1);

    let told = lease.call(|_| -> rusqlite::Result<()> { panic!("no tea") });

    assert!(told.await.is_err());
    eventually("closed", || times_open(&disk.path) == 0).await;
}

/// A result whose destructor panics, on the thread of the connection.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("no tea");
    }
}

#[tokio::test]
async fn a_panic_in_the_destructor_of_an_unwanted_result_does_no_harm() {
    let disk = Disk::new("panics-5");
    let db = disk.db().await;
    let (begun, go_on) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let flags = (Arc::clone(&begun), Arc::clone(&go_on));
    let read = tokio::spawn({
        let db = db.clone();
        async move {
            let read = db.read(move |_| {
                flags.0.store(true, Ordering::SeqCst);
                while !flags.1.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                Ok::<_, rusqlite::Error>(Bomb)
            });
            std::mem::drop(read.await.map(std::mem::ManuallyDrop::new));
        }
    });
    eventually("begun", || begun.load(Ordering::SeqCst)).await;

    read.abort();
    assert!(read.await.unwrap_err().is_cancelled());
    go_on.store(true, Ordering::SeqCst);

    eventually("closed", || db.pool().status().closes.total() == 1).await;
    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn an_init_that_panics_fails_the_open() {
    let disk = Disk::new("panics-6");
    let db = disk.builder().init(|_| panic!("no tea")).build().unwrap();

    let failed = db.read(|_| Ok::<_, rusqlite::Error>(())).await;

    let error = failed.unwrap_err();
    assert!(matches!(error, Error::Acquire(AcquireError::Open { .. })));
    assert!(
        error.to_string().ends_with("opening panicked: no tea"),
        "{error}"
    );
    assert_eq!(times_open(&disk.path), 0);
}

#[tokio::test]
async fn an_init_that_fails_is_told() {
    let disk = Disk::new("panics-7");
    let init = |conn: &mut rusqlite::Connection| conn.execute_batch("no sql");
    let db = disk.builder().init(init).build().unwrap();

    let error = db
        .write(|_| Ok::<_, rusqlite::Error>(()))
        .await
        .unwrap_err();

    assert!(error.to_string().contains("syntax error"), "{error}");
    assert!(error.sqlite().is_some());
}
