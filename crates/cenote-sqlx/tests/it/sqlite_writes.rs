//! Writes on SQLite: one connection has the right to write, and its queue is seen in the pool.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cenote::Health;
use cenote_sqlx::Db;
use futures_util::future::join_all;
use sqlx::{Connection, Error, Sqlite, SqliteConnection};
use tokio::time::timeout;

use crate::world::sqlite::{self as world, number, run};

const LONG: Duration = Duration::from_secs(20);

async fn database(customize: impl FnOnce(Builder) -> Builder) -> (Db<Sqlite>, world::Home) {
    let (builder, home) = world::builder();
    let builder = builder.max_size(4).acquire_timeout(LONG);
    let db = customize(builder).build().unwrap();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, batch INTEGER)",
    )
    .await;
    (db, home)
}

type Builder = cenote_sqlx::Builder<Sqlite>;

async fn insert(db: &Db<Sqlite>, id: i32) -> Result<(), Error> {
    let insert = sqlx::query("INSERT INTO t (id) VALUES (?)").bind(id);
    insert.execute(db).await.map(drop)
}

/// Waits until so many callers wait.
async fn until_waiting(db: &Db<Sqlite>, waiting: usize) {
    while db.pool().status().waiting < waiting {
        tokio::task::yield_now().await;
    }
}

/// The ids of the rows that a new connection finds.
async fn after_a_reopen(home: &world::Home) -> HashSet<i32> {
    let mut connection = SqliteConnection::connect(&world::url_at(home))
        .await
        .unwrap();
    let ids = sqlx::query_scalar("SELECT id FROM t").fetch_all(&mut connection);
    ids.await.unwrap().into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_is_there_after_a_reopen_and_a_failed_one_fails_alone() {
    let (db, home) = database(|builder| builder).await;
    let write = |id: i32| {
        let db = db.clone();
        tokio::spawn(async move { (id, insert(&db, id).await) })
    };

    // Each id twice, so that half of them must fail.
    let writes = join_all((0..400).map(|nth| write(nth / 2))).await;

    let (mut written, mut refused) = (Vec::new(), 0);
    for outcome in writes {
        match outcome.unwrap() {
            (id, Ok(())) => written.push(id),
            (_, Err(Error::Database(error))) if error.is_unique_violation() => refused += 1,
            (id, Err(error)) => panic!("{id}: {error}"),
        }
    }
    assert_eq!((written.len(), refused), (200, 200));
    drop(db);
    assert_eq!(after_a_reopen(&home).await, written.into_iter().collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_write_is_whole_or_absent_and_an_acknowledged_one_is_whole() {
    const ROWS: i64 = 300;
    let (db, home) = database(|builder| builder).await;
    let write = |batch: i64| {
        let db = db.clone();
        tokio::spawn(async move {
            let sql = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n LIMIT 300) \
                       INSERT INTO t (batch) SELECT ? FROM n";
            let write = sqlx::query(sql).bind(batch).execute(&db);
            let limit = Duration::from_micros(fastrand::u64(0..40_000));
            (batch, timeout(limit, write).await)
        })
    };

    let writes = join_all((0..300).map(write)).await;

    drop(db);
    let mut connection = SqliteConnection::connect(&world::url_at(&home))
        .await
        .unwrap();
    let (mut acknowledged, mut cut) = (0, 0);
    for outcome in writes {
        let (batch, outcome) = outcome.unwrap();
        let rows = sqlx::query_scalar("SELECT count(*) FROM t WHERE batch = ?").bind(batch);
        let rows: i64 = rows.fetch_one(&mut connection).await.unwrap();
        match outcome {
            Ok(written) => {
                assert_eq!(written.unwrap().rows_affected(), ROWS as u64);
                assert_eq!(rows, ROWS, "an acknowledged write");
                acknowledged += 1;
            }
            Err(_) => {
                assert!(
                    rows == 0 || rows == ROWS,
                    "{rows} rows of a cancelled write"
                );
                cut += 1;
            }
        }
    }
    assert!(acknowledged > 0 && cut > 0, "{acknowledged} and {cut}");
}

#[tokio::test]
async fn one_connection_writes_and_is_beside_those_of_readers() {
    let (db, _home) = database(|builder| builder.max_size(2)).await;
    let readers = [db.acquire().await.unwrap(), db.acquire().await.unwrap()];

    for id in 0..50 {
        insert(&db, id).await.unwrap();
    }
    let mut transaction = db.begin().await.unwrap();
    let update = sqlx::query("UPDATE t SET batch = 1").execute(&mut transaction);
    assert_eq!(update.await.unwrap().rows_affected(), 50);
    transaction.commit().await.unwrap();

    let writer = db.pool().annex().unwrap();
    assert_eq!(writer.status().opened, 1, "it stays warm");
    let status = db.pool().status();
    assert_eq!((status.max_size, status.in_use, status.total), (2, 2, 3));
    drop(readers);
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 50);
}

#[tokio::test]
async fn a_transaction_reads_and_writes_on_the_connection_of_the_writer() {
    let (db, _home) = database(|builder| builder).await;

    db.transaction(async || {
        insert(&db, 1).await?;
        assert_eq!(number(&db, "SELECT count(*) FROM t").await, 1);
        db.transaction(async || insert(&db, 2).await).await?;
        assert!(db.in_transaction() && db.peek().is_some());
        Ok::<_, Error>(())
    })
    .await
    .unwrap();

    let writer = db.pool().annex().unwrap().status();
    assert_eq!((db.pool().status().opened, writer.opened), (1, 1));
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 2);
}

#[tokio::test]
async fn a_waiting_writer_is_seen_in_the_pool() {
    let customize = |builder: Builder| builder.stuck_after(Duration::from_millis(50));
    let (db, _home) = database(customize).await;
    let writing = db.begin().await.unwrap();
    let waiting = tokio::spawn({
        let db = db.clone();
        async move { insert(&db, 1).await }
    });
    until_waiting(&db, 1).await;

    let status = db.pool().status();
    assert_eq!((status.in_use, status.waiting), (1, 1));
    assert!(status.oldest_wait.is_some());
    let leases = db.pool().leases();
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].site.file(), file!());
    while !matches!(db.pool().health(), Health::Stuck { .. }) {
        tokio::task::yield_now().await;
    }

    writing.rollback().await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(db.pool().health(), Health::Healthy);
}

#[tokio::test]
async fn a_close_of_the_pool_tells_waiting_writers_at_once() {
    let (db, _home) = database(|builder| builder.acquire_timeout(None)).await;
    let writing = db.begin().await.unwrap();
    let waiting = (0..3).map(|id| {
        let db = db.clone();
        tokio::spawn(async move { insert(&db, id).await })
    });
    let waiting: Vec<_> = waiting.collect();
    until_waiting(&db, 3).await;

    db.pool().close();

    for told in timeout(LONG, join_all(waiting)).await.unwrap() {
        assert!(matches!(told.unwrap(), Err(Error::PoolClosed)));
    }
    drop(writing);
    timeout(LONG, db.close()).await.unwrap();
}

#[tokio::test]
async fn an_observer_hears_of_waiting_writers() {
    let recorder = Arc::new(cenote_testkit::Recorder::default());
    let observer = recorder.clone();
    let customize = |builder: Builder| builder.pool(move |pool| pool.observer(observer));
    let (db, _home) = database(customize).await;
    let writing = db.begin().await.unwrap();
    let waiting = tokio::spawn({
        let db = db.clone();
        async move { insert(&db, 1).await }
    });
    until_waiting(&db, 1).await;
    let before = recorder.of("acquired").len();

    writing.rollback().await.unwrap();
    waiting.await.unwrap().unwrap();

    assert_eq!(recorder.of("acquired").len(), before + 1);
}

#[tokio::test]
async fn a_changed_session_in_a_scope_does_not_keep_the_right_to_write() {
    let (db, _home) = database(|builder| builder).await;

    cenote::scope(async {
        run(
            &db,
            "CREATE TEMP TABLE mine (a INTEGER); INSERT INTO t (id) VALUES (1)",
        )
        .await;
        let other = tokio::spawn({
            let db = db.clone();
            async move { insert(&db, 2).await }
        });
        timeout(LONG, other).await.unwrap().unwrap().unwrap();
        assert_eq!(number(&db, "SELECT count(*) FROM mine").await, 0);
    })
    .await;

    assert_eq!(db.pool().annex().unwrap().status().opened, 1);
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 2);
}

#[tokio::test]
async fn the_only_connection_of_a_pool_also_writes() {
    let (db, _home) = database(|builder| builder.max_size(1)).await;

    insert(&db, 1).await.unwrap();

    assert!(db.pool().annex().is_none());
    assert_eq!(db.pool().status().opened, 1);
}
