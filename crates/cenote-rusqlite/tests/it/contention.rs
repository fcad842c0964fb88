//! Other connections to the same file, as other processes have them.

use std::time::Duration;

use cenote_rusqlite::rusqlite::{Connection, ErrorCode};
use cenote_rusqlite::{Class, Error};
use tokio::task::JoinSet;

use crate::{Disk, insert, rows};

#[tokio::test]
async fn a_write_that_meets_a_foreign_writer_is_worth_a_retry() {
    let disk = Disk::new("contention-1");
    let db = disk.builder().busy_timeout(Duration::ZERO).build().unwrap();
    crate::create(&db).await;
    let foreign = Connection::open(&disk.path).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();

    let error = db.write(|tx| insert(tx, 1)).await.unwrap_err();

    assert!(matches!(error, Error::Transaction(_)));
    assert_eq!(error.class(), Class::Conflict);
    assert!(error.is_retryable());
    foreign.execute_batch("COMMIT").unwrap();
    db.write(|tx| insert(tx, 1)).await.unwrap();
    assert_eq!(db.pool().status().closes.total(), 0);
}

#[tokio::test]
async fn a_write_waits_for_a_foreign_writer() {
    let disk = Disk::new("contention-2");
    let minutes = Duration::from_secs(120);
    let db = disk.builder().busy_timeout(minutes).build().unwrap();
    crate::create(&db).await;
    let foreign = Connection::open(&disk.path).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = tokio::spawn({
        let db = db.clone();
        async move { db.write(|tx| insert(tx, 1)).await.unwrap() }
    });
    while db.pool().status().in_use == 0 {
        tokio::task::yield_now().await;
    }

    foreign.execute_batch("COMMIT").unwrap();

    assert_eq!(write.await.unwrap(), 1);
}

#[tokio::test]
async fn a_write_that_waits_for_a_foreign_writer_can_be_given_up() {
    let disk = Disk::new("contention-3");
    let hours = Duration::from_secs(7200);
    let db = disk.builder().busy_timeout(hours).build().unwrap();
    crate::create(&db).await;
    let foreign = Connection::open(&disk.path).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = tokio::spawn({
        let db = db.clone();
        async move { db.write(|tx| insert(tx, 1)).await.unwrap() }
    });
    while db.pool().status().in_use == 0 {
        tokio::task::yield_now().await;
    }

    write.abort();
    assert!(write.await.unwrap_err().is_cancelled());

    let lease = db.acquire_writer().await;
    assert!(
        lease.is_ok(),
        "the writer is free, and the foreign one still writes"
    );
    drop(lease);
    foreign.execute_batch("COMMIT").unwrap();
    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn many_pools_may_create_the_same_file() {
    let disk = Disk::new("contention-4");
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let db = disk.builder().busy_timeout(Duration::from_secs(120));
        let db = db.build().unwrap();
        tasks.spawn(async move { db.warm().await.map_err(|error| error.to_string()) });
    }

    while let Some(warmed) = tasks.join_next().await {
        assert_eq!(warmed.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn a_locked_table_is_worth_a_retry() {
    let disk = Disk::new("contention-5");
    let db = disk.db().await;
    let mut lease = db.acquire_writer().await.unwrap();

    let locked = lease.call(|conn| {
        insert(conn, 1)?;
        let mut rows = conn.prepare("SELECT * FROM t")?;
        let mut rows = rows.query([])?;
        rows.next()?;
        conn.execute_batch("DROP TABLE t") // while a statement reads it
    });

    let error = locked.await.unwrap_err();
    let code = error.sqlite().unwrap().sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::DatabaseLocked));
    assert!(error.is_retryable());
}
