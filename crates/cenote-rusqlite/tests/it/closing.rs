//! The end of a pool.

use std::sync::mpsc;
use std::time::Duration;

use cenote::AcquireError;
use cenote_rusqlite::rusqlite;
use cenote_rusqlite::{Db, Error};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Disk, eventually, for_ever, insert, rows, threads, times_open};

const LIMIT: Duration = Duration::from_secs(120);

/// Opens three readers and the writer.
async fn use_all(db: &Db) {
    let leases = (db.acquire().await, db.acquire().await, db.acquire().await);
    assert!(leases.0.is_ok() && leases.1.is_ok() && leases.2.is_ok());
    db.write(|tx| insert(tx, 1)).await.unwrap();
}

#[tokio::test]
async fn threads_end_with_a_pool_that_is_closed() {
    let disk = Disk::new("closing-1");
    let db = disk.db().await;
    use_all(&db).await;
    assert_eq!(threads("closing-1"), 4);

    let left = db.close_within(LIMIT).await;

    assert!(left.is_empty());
    assert_eq!(
        times_open(&disk.path),
        0,
        "every connection is closed by now"
    );
    eventually("the threads have ended", || threads("closing-1") == 0).await;
    let refused = db.read(|_| Ok::<_, rusqlite::Error>(())).await;
    assert!(matches!(
        refused,
        Err(Error::Acquire(AcquireError::Closed { .. }))
    ));
}

#[tokio::test]
async fn threads_end_with_a_pool_that_is_dropped() {
    let disk = Disk::new("closing-2");
    let db = disk.db().await;
    use_all(&db).await;
    assert_eq!(threads("closing-2"), 4);

    drop(db);

    eventually("the threads have ended", || threads("closing-2") == 0).await;
    assert_eq!(times_open(&disk.path), 0);
}

#[test]
fn threads_end_with_a_runtime_that_is_dropped() {
    let disk = Disk::new("closing-3");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let db = runtime.block_on(disk.db());
    runtime.block_on(use_all(&db));

    drop(db);
    drop(runtime);

    let other = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    other.unwrap().block_on(async {
        eventually("the threads have ended", || threads("closing-3") == 0).await;
    });
}

#[tokio::test]
async fn a_closure_that_runs_is_waited_for() {
    let disk = Disk::new("closing-4");
    let db = disk.db().await;
    let ((tell, begun), (end, ended)) = (oneshot::channel(), mpsc::channel::<()>());
    let write = tokio::spawn({
        let db = db.clone();
        async move {
            let write = db.write(move |tx| {
                tell.send(()).unwrap();
                assert!(ended.recv().is_err(), "the test has dropped its side");
                insert(tx, 1)
            });
            write.await
        }
    });
    begun.await.unwrap();

    let left = db.close_within(Duration::from_millis(20)).await;
    assert_eq!(left.leases.len(), 1, "it runs");
    drop(end);

    assert_eq!(write.await.unwrap().unwrap(), 1, "and it is committed");
    assert!(db.close_within(LIMIT).await.is_empty());
    assert_eq!(rows(&disk.builder().build().unwrap()).await, 1);
}

#[tokio::test]
async fn a_closure_that_does_not_end_can_be_severed() {
    let disk = Disk::new("closing-5");
    let db = disk.db().await;
    let (tell, begun) = oneshot::channel();
    let write: JoinHandle<Result<i64, Error>> = tokio::spawn({
        let db = db.clone();
        async move {
            let write = db.write(move |tx| {
                insert(tx, 1)?;
                tell.send(()).unwrap();
                for_ever(tx)
            });
            write.await
        }
    });
    begun.await.unwrap();
    let left = db.close_within(Duration::from_millis(20)).await;
    assert_eq!(left.leases.len(), 1, "it runs");

    assert_eq!(db.pool().sever(), 1);

    let error = write.await.unwrap().unwrap_err();
    let code = error.sqlite().unwrap().sqlite_error_code();
    assert_eq!(code, Some(rusqlite::ErrorCode::OperationInterrupted));
    assert!(db.close_within(LIMIT).await.is_empty());
    assert_eq!(rows(&disk.builder().build().unwrap()).await, 0);
}

#[tokio::test]
async fn a_session_outlives_its_pool_when_it_is_detached() {
    let disk = Disk::new("closing-6");
    let db = disk.db().await;
    let mut session = cenote::Lease::detach(db.acquire_writer().await.unwrap());
    assert!(db.close_within(LIMIT).await.is_empty());

    session.call(|conn| insert(conn, 1)).await.unwrap();

    assert_eq!(times_open(&disk.path), 1);
    drop(session);
    eventually("closed", || times_open(&disk.path) == 0).await;
}
