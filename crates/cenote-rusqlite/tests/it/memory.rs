//! Databases in memory.

use cenote_rusqlite::Db;
use tokio::task::JoinSet;

use crate::{create, insert, patient, rows};

#[tokio::test]
async fn a_database_in_memory_lives_as_long_as_its_pool() {
    let db = patient(Db::url(":memory:")).build().unwrap();
    create(&db).await;
    db.write(|tx| insert(tx, 1)).await.unwrap();

    db.pool().invalidate(); // all connections are closed
    while db.pool().status().total > 0 {
        tokio::task::yield_now().await;
    }

    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn each_pool_has_a_database_of_its_own() {
    let (first, second) = (Db::memory().build().unwrap(), Db::memory().build().unwrap());

    create(&first).await;
    create(&second).await;
    first.write(|tx| insert(tx, 1)).await.unwrap();

    assert_eq!((rows(&first).await, rows(&second).await), (1, 0));
}

#[tokio::test]
async fn a_database_with_a_name_is_shared_and_ends_with_its_last_pool() {
    let open = || patient(Db::url("file:/shared?vfs=memdb")).build().unwrap();
    let (first, second) = (open(), open());
    create(&first).await;
    first.write(|tx| insert(tx, 1)).await.unwrap();

    assert_eq!(rows(&second).await, 1);
    for db in [first, second] {
        let left = db.close_within(std::time::Duration::from_secs(120)).await;
        assert!(left.is_empty());
    }

    create(&open()).await; // it would fail if the table were there
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_read_and_write_in_memory() {
    let minutes = std::time::Duration::from_secs(120);
    let db = patient(Db::memory()).busy_timeout(minutes).build().unwrap();
    create(&db).await;
    let mut tasks = JoinSet::new();
    for task in 0..32 {
        let db = db.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                db.write(move |tx| insert(tx, task)).await.unwrap();
                rows(&db).await;
            }
        });
    }

    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }

    assert_eq!(rows(&db).await, 32 * 5);
}
