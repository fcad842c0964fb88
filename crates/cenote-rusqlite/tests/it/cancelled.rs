//! Calls whose callers give up.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use cenote_rusqlite::rusqlite::hooks::{AuthContext, Authorization};
use cenote_rusqlite::rusqlite::{self, Connection};
use cenote_rusqlite::{Db, Lease};
use cenote_testkit::conformance::cut;
use tokio::sync::oneshot;

use crate::{Disk, eventually, for_ever, insert, number, rows};

/// More polls than any call needs.
const MOST_POLLS: usize = 100;

/// Begins a call, and gives it up when its closure runs.
async fn give_up_midway<T>(begun: oneshot::Receiver<()>, call: impl Future<Output = T>) {
    tokio::select! {
        biased;
        told = begun => told.unwrap(),
        _ = call => panic!("the call has ended by itself"),
    }
}

async fn begin_and_give_up(db: &Db, work: fn(&Connection) -> rusqlite::Result<i64>) {
    let (tell, begun) = oneshot::channel();
    let read = db.read(move |conn| {
        tell.send(()).unwrap();
        work(conn)
    });
    give_up_midway(begun, read).await;
}

#[tokio::test]
async fn a_statement_whose_caller_gives_up_is_interrupted() {
    let disk = Disk::new("cancelled-1");
    let db = disk.builder().max_size(1).build().unwrap();
    crate::create(&db).await;

    begin_and_give_up(&db, for_ever).await;

    assert_eq!(rows(&db).await, 0, "the only reader is free again");
    assert_eq!(db.pool().status().closes.total(), 0, "and it is the same");
}

#[tokio::test]
async fn further_statements_of_the_closure_are_stopped() {
    let disk = Disk::new("cancelled-2");
    let db = disk.builder().max_size(1).build().unwrap();
    crate::create(&db).await;

    // Each statement is so short that an interrupt would hardly meet it.
    begin_and_give_up(&db, |conn| {
        loop {
            number(conn, "SELECT 1")?;
        }
    })
    .await;
    begin_and_give_up(&db, |conn| {
        let mut statement = conn.prepare("SELECT 1")?;
        loop {
            statement.exists([])?;
        }
    })
    .await;

    assert_eq!(rows(&db).await, 0, "the only reader is free again");
}

#[tokio::test]
async fn a_statement_is_interrupted_also_under_handlers_of_the_user() {
    let disk = Disk::new("cancelled-9");
    let runs = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&runs);
    let init = move |conn: &mut Connection| {
        let told = Arc::clone(&told);
        let note = move || {
            told.store(true, Ordering::SeqCst);
            false
        };
        conn.authorizer(Some(|_: AuthContext<'_>| Authorization::Allow))?;
        conn.progress_handler(100_000, Some(note)) // only the endless query has so many steps
    };
    let db = disk.builder().max_size(1).init(init).build().unwrap();
    crate::create(&db).await;
    let read = tokio::spawn({
        let db = db.clone();
        async move { db.read(|conn| for_ever(conn)).await.map(drop) }
    });
    eventually("it runs", || runs.load(Ordering::SeqCst)).await;

    read.abort();

    assert!(read.await.unwrap_err().is_cancelled());
    assert_eq!(rows(&db).await, 0, "the only reader is free again");
}

#[tokio::test]
async fn a_connection_is_not_lent_before_the_closure_has_ended() {
    let disk = Disk::new("cancelled-3");
    let db = disk.builder().max_size(1).build().unwrap();
    crate::create(&db).await;
    let ((tell, begun), (end, ended)) = (oneshot::channel(), mpsc::channel::<()>());
    let read = db.read(move |_| {
        tell.send(()).unwrap();
        assert!(ended.recv().is_err(), "the test has dropped its side");
        Ok::<_, rusqlite::Error>(())
    });
    give_up_midway(begun, read).await;

    let status = db.pool().status();
    assert_eq!((status.idle, status.cleaning), (1, 1), "the writer is idle");
    assert!(db.pool().try_acquire().unwrap().is_none());
    drop(end);

    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn a_write_that_is_given_up_is_rolled_back() {
    let disk = Disk::new("cancelled-4");
    let db = disk.db().await;
    let ((tell, begun), (end, ended)) = (oneshot::channel(), mpsc::channel::<()>());
    let write = db.write(move |tx| {
        insert(tx, 1)?;
        tell.send(()).unwrap();
        assert!(ended.recv().is_err(), "the test has dropped its side");
        Ok::<_, rusqlite::Error>(()) // as if nothing had happened
    });
    give_up_midway(begun, write).await;
    drop(end);

    db.write(|tx| insert(tx, 2)).await.unwrap();

    assert_eq!(rows(&db).await, 1);
    assert_eq!(db.pool().status().closes.total(), 0);
}

#[tokio::test]
async fn a_lease_whose_call_was_given_up_can_be_used_again() {
    let disk = Disk::new("cancelled-5");
    let db = disk.db().await;
    let mut lease = db.acquire().await.unwrap();
    let (tell, begun) = oneshot::channel();
    let call = lease.call(move |conn| {
        tell.send(()).unwrap();
        for_ever(conn)
    });
    give_up_midway(begun, call).await;

    let sum = lease.call(|conn| number(conn, "SELECT 1 + 1")).await;

    assert_eq!(sum.unwrap(), 2);
}

#[tokio::test]
async fn a_write_may_be_given_up_at_every_await() {
    let disk = Disk::new("cancelled-6");
    let db = disk.db().await;
    let mut at_most = 0;
    for polls in 0..MOST_POLLS {
        let write = cut(polls, db.write(|tx| insert(tx, 1))).await;
        at_most += i64::from(polls > 0);

        // The next writer is served, and finds no transaction.
        let mut lease = db.acquire_writer().await.unwrap();
        let autocommit = lease.call(|conn| Ok::<_, rusqlite::Error>(conn.is_autocommit()));
        assert!(autocommit.await.unwrap());
        Lease::release(lease).await;
        assert!(rows(&db).await <= at_most);
        if let Some(written) = write {
            written.unwrap();
            return;
        }
    }
    panic!("the write never ends");
}

#[tokio::test]
async fn reads_and_acquires_may_be_given_up_at_every_await() {
    let disk = Disk::new("cancelled-7");
    let db = disk.builder().max_size(1).build().unwrap();
    crate::create(&db).await;
    for polls in 0..MOST_POLLS {
        let count = |conn: &mut Connection| number(conn, "SELECT count(*) FROM t");
        let read = cut(polls, db.read(count)).await;
        let lease = cut(polls, db.acquire()).await;
        let ended = read.is_some() && lease.is_some();
        drop(lease);

        assert_eq!(rows(&db).await, 0);
        if ended {
            return;
        }
    }
    panic!("the read never ends");
}

#[tokio::test]
async fn a_runtime_that_ends_ends_the_calls() {
    let disk = Disk::new("cancelled-8");
    let db = disk.db().await;
    let (tell, begun) = oneshot::channel();
    let other = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let lent = db.clone();
    other.spawn(async move {
        let write = lent.write(move |tx| {
            insert(tx, 1)?;
            tell.send(()).unwrap();
            for_ever(tx)
        });
        write.await.unwrap_err();
    });
    begun.await.unwrap();

    other.shutdown_background();

    eventually("the right to write is free", || {
        db.pool().annex().unwrap().status().in_use == 0
    })
    .await;
    db.write(|tx| insert(tx, 2)).await.unwrap();
    assert_eq!(rows(&db).await, 1);
}
