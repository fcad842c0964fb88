//! One writer and many readers.

use std::sync::mpsc;

use cenote_rusqlite::rusqlite;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::{Disk, eventually, insert, number, rows};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_write_and_none_is_refused() {
    let disk = Disk::new("writers-1");
    let db = disk.db().await;
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let db = db.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                db.write(move |tx| insert(tx, task)).await.unwrap();
                db.read(|conn| number(conn, "SELECT max(n) FROM t"))
                    .await
                    .unwrap();
            }
        });
    }

    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }

    assert_eq!(rows(&db).await, 64 * 5);
    assert_eq!(db.pool().annex().unwrap().status().opened, 1);
}

#[tokio::test]
async fn writers_are_served_in_the_order_of_their_arrival() {
    let disk = Disk::new("writers-2");
    let db = disk.db().await;
    let held = db.acquire_writer().await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let waiter = db.clone();
        tasks.spawn(async move { waiter.write(move |tx| insert(tx, task)).await.unwrap() });
        let waiting = usize::try_from(task).unwrap() + 1;
        eventually("waits", || db.pool().status().waiting == waiting).await;
    }

    drop(held);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }

    let in_order = db.read(|conn| {
        let mut rows = conn.prepare("SELECT n FROM t ORDER BY rowid")?;
        let rows = rows.query_map([], |row| row.get::<_, i64>(0))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    });
    assert_eq!(in_order.await.unwrap(), (0..64).collect::<Vec<_>>());
}

#[tokio::test]
async fn readers_do_not_wait_for_the_writer() {
    let disk = Disk::new("writers-3");
    let db = disk.db().await;
    let ((tell, begun), (end, ended)) = (oneshot::channel(), mpsc::channel::<()>());
    let write = tokio::spawn({
        let db = db.clone();
        async move {
            let write = db.write(move |tx| {
                insert(tx, 1)?;
                tell.send(()).unwrap();
                assert!(ended.recv().is_err(), "the test has dropped its side");
                Ok::<_, rusqlite::Error>(())
            });
            write.await.unwrap();
        }
    });
    begun.await.unwrap();

    // The write ends only after these reads.
    for _ in 0..20 {
        assert_eq!(rows(&db).await, 0);
    }
    drop(end);

    write.await.unwrap();
    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn the_writer_does_not_wait_for_readers() {
    let disk = Disk::new("writers-4");
    let db = disk.db().await;
    let mut readers = Vec::new();
    for _ in 0..db.pool().config().max_size {
        let mut lease = db.acquire().await.unwrap();
        let begun = lease.call(|conn| conn.execute_batch("BEGIN; SELECT * FROM t"));
        begun.await.unwrap();
        readers.push(lease);
    }

    db.write(|tx| insert(tx, 1)).await.unwrap();

    let old = readers[0].call(|conn| number(conn, "SELECT count(*) FROM t"));
    assert_eq!(old.await.unwrap(), 0, "its transaction sees the old state");
    drop(readers);
    assert_eq!(rows(&db).await, 1);
}
