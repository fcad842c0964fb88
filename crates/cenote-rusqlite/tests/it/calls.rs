//! What reads, writes and calls of a lease do.

use std::thread;

use cenote_rusqlite::rusqlite::{self, ErrorCode};
use cenote_rusqlite::{Class, Db, Error};

use crate::{Disk, insert, number, rows};

#[tokio::test]
async fn a_read_cannot_write() {
    for db in [Disk::new("calls-1").db().await, in_memory().await] {
        let error = db.read(|conn| insert(conn, 1)).await.unwrap_err();

        let code = error.sqlite().and_then(rusqlite::Error::sqlite_error_code);
        assert_eq!(code, Some(ErrorCode::ReadOnly));
        assert_eq!(error.class(), Class::Statement);
        assert_eq!(rows(&db).await, 0);
    }
}

#[tokio::test]
async fn a_write_commits_what_its_closure_wrote() {
    for db in [Disk::new("calls-2").db().await, in_memory().await] {
        let written = db.write(|tx| Ok::<_, rusqlite::Error>(insert(tx, 1)? + insert(tx, 2)?));

        assert_eq!(written.await.unwrap(), 2);
        assert_eq!(rows(&db).await, 2);
    }
}

#[tokio::test]
async fn a_write_rolls_back_if_its_closure_fails() {
    let disk = Disk::new("calls-3");
    let db = disk.db().await;

    let failed = db.write(|tx| {
        insert(tx, 1).map_err(|error| error.to_string())?;
        Err::<(), _>("sold out".to_owned())
    });

    assert!(matches!(failed.await, Err(Error::Closure(text)) if text == "sold out"));
    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn a_write_rolls_back_whatever_its_closure_sets() {
    let disk = Disk::new("calls-4");
    let db = disk.db().await;

    let failed = db.write(|tx| {
        tx.set_drop_behavior(rusqlite::DropBehavior::Commit);
        insert(tx, 1)?;
        tx.execute_batch("no sql")
    });

    assert!(failed.await.is_err());
    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn a_write_may_have_savepoints() {
    let disk = Disk::new("calls-5");
    let db = disk.db().await;

    let written = db.write(|tx| {
        insert(tx, 1)?;
        let savepoint = tx.savepoint()?;
        insert(&savepoint, 2)?;
        drop(savepoint); // rolls back
        insert(tx, 3)
    });

    written.await.unwrap();
    assert_eq!(rows(&db).await, 2);
}

#[tokio::test]
async fn a_write_that_has_ended_its_transaction_itself_is_told() {
    let disk = Disk::new("calls-6");
    let db = disk.db().await;

    let ended = db.write(|tx| tx.execute_batch("INSERT INTO t VALUES (1); COMMIT"));

    assert!(matches!(ended.await, Err(Error::Transaction(_))));
    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn a_transaction_goes_on_in_the_next_call_of_a_lease() {
    let disk = Disk::new("calls-7");
    let db = disk.db().await;
    let mut lease = db.acquire_writer().await.unwrap();

    let begin = lease.call(|conn| conn.execute_batch("BEGIN IMMEDIATE"));
    begin.await.unwrap();
    lease.call(|conn| insert(conn, 1)).await.unwrap();
    let commit = lease.call(|conn| conn.execute_batch("COMMIT"));
    commit.await.unwrap();
    drop(lease);

    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn each_connection_has_a_thread_of_its_own() {
    let disk = Disk::new("calls-8");
    let db = disk.db().await;
    let id = |_: &mut rusqlite::Connection| Ok::<_, rusqlite::Error>(thread::current().id());
    let (mut first, mut second) = (db.acquire().await.unwrap(), db.acquire().await.unwrap());

    let once = first.call(id).await.unwrap();
    let again = first.call(id).await.unwrap();
    let other = second.call(id).await.unwrap();

    assert_eq!(once, again);
    assert_ne!(once, other);
    assert_ne!(once, thread::current().id());
}

#[test]
fn threads_without_a_runtime_read_and_write() {
    let db = Db::memory().build().unwrap();
    let created = db.write_blocking(|tx| tx.execute_batch("CREATE TABLE t (n)"));
    created.unwrap();

    db.write_blocking(|tx| insert(tx, 7)).unwrap();
    let failed = db.write_blocking(|tx| {
        insert(tx, 8)?;
        tx.execute_batch("no sql")
    });
    let mut lease = db.pool().acquire_blocking().unwrap();
    let found = lease.call_blocking(|conn| number(conn, "SELECT n FROM t"));

    assert!(failed.is_err());
    assert_eq!(found.unwrap(), 7);
    assert_eq!(
        db.read_blocking(|conn| number(conn, "SELECT n FROM t"))
            .unwrap(),
        7
    );
}

#[tokio::test]
async fn a_holder_is_known_by_its_line() {
    let disk = Disk::new("calls-9");
    let db = disk.db().await;
    let seen = db.clone();

    let (read, line) = (
        db.read(move |_| Ok::<_, rusqlite::Error>(seen.pool().leases())),
        line!() - 1,
    );
    let leases = read.await.unwrap();

    assert_eq!(
        (leases[0].site.file(), leases[0].site.line()),
        (file!(), line)
    );
}

#[tokio::test]
async fn cached_statements_stay_prepared() {
    let disk = Disk::new("calls-10");
    let db = disk
        .builder()
        .max_size(1)
        .statement_cache(1)
        .build()
        .unwrap();
    let runs = |conn: &mut rusqlite::Connection| {
        let mut statement = conn.prepare_cached("SELECT 1")?;
        statement.exists([])?;
        Ok::<_, rusqlite::Error>(statement.get_status(rusqlite::StatementStatus::Run))
    };

    assert_eq!(db.read(runs).await.unwrap(), 1);
    assert_eq!(db.read(runs).await.unwrap(), 2);

    let other = db.read(|conn| conn.prepare_cached("SELECT 2").map(drop));
    other.await.unwrap();
    assert_eq!(db.read(runs).await.unwrap(), 1, "there was room for one");
}

async fn in_memory() -> Db {
    let db = Db::memory().build().unwrap();
    crate::create(&db).await;
    db
}
