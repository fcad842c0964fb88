//! What the next user of a connection must not see.

use cenote_rusqlite::rusqlite::hooks::{AuthContext, Authorization};
use cenote_rusqlite::rusqlite::{self, Connection, Result};
use cenote_rusqlite::{Db, Lease};

use crate::{Disk, insert, number, rows};

/// A handle with one reader, so that the next lease has the same connection.
async fn one_reader(disk: &Disk) -> Db {
    let db = disk.builder().max_size(1).build().unwrap();
    crate::create(&db).await;
    db
}

#[tokio::test]
async fn an_open_transaction_is_rolled_back() {
    let disk = Disk::new("hygiene-1");
    let db = disk.db().await;
    let mut lease = db.acquire_writer().await.unwrap();
    let begun = lease.call(|conn| conn.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)"));
    begun.await.unwrap();
    let id = cenote::Lease::id(&lease);

    drop(lease);

    let mut lease = db.acquire_writer().await.unwrap();
    let autocommit = lease.call(|conn| Ok::<_, rusqlite::Error>(conn.is_autocommit()));
    assert!(autocommit.await.unwrap());
    assert_eq!(cenote::Lease::id(&lease), id, "the connection is kept");
    assert_eq!(rows(&db).await, 0);
}

#[tokio::test]
async fn a_read_leaves_no_transaction() {
    let disk = Disk::new("hygiene-2");
    let db = one_reader(&disk).await;
    let begun = db.read(|conn| conn.execute_batch("BEGIN; SELECT * FROM t"));
    begun.await.unwrap();

    db.write(|tx| insert(tx, 1)).await.unwrap();

    assert_eq!(rows(&db).await, 1, "no old state of the database is seen");
}

/// Changes a session, and then looks at it in the next lease.
async fn changed(
    name: &str,
    change: fn(&mut Connection) -> Result<()>,
    look: fn(&Connection) -> bool,
) {
    let disk = Disk::new(name);
    let db = one_reader(&disk).await;
    let mut lease = db.acquire().await.unwrap();
    let look = move |conn: &mut Connection| Ok::<_, rusqlite::Error>(look(conn));
    assert!(!lease.call(look).await.unwrap(), "{name}: at first");
    lease.call(change).await.unwrap();
    assert!(lease.call(look).await.unwrap(), "{name}: in the same lease");
    let id = cenote::Lease::id(&lease);

    Lease::release(lease).await;

    let mut lease = db.acquire().await.unwrap();
    assert!(
        !lease.call(look).await.unwrap(),
        "{name}: in the next lease"
    );
    assert_eq!(cenote::Lease::id(&lease), id, "{name}: its slot is kept");
    let refused = lease.call(|conn| insert(conn, 1)).await;
    assert!(refused.is_err(), "{name}: it still refuses to write");
}

#[tokio::test]
async fn a_temporary_table_is_gone() {
    changed(
        "hygiene-3",
        |conn| conn.execute_batch("PRAGMA query_only = 0; CREATE TEMP TABLE mine (n)"),
        |conn| conn.prepare("SELECT * FROM mine").is_ok(),
    )
    .await;
}

#[tokio::test]
async fn an_attached_database_is_gone() {
    changed(
        "hygiene-4",
        |conn| conn.execute_batch("ATTACH ':memory:' AS other"),
        |conn| conn.prepare("SELECT * FROM other.sqlite_master").is_ok(),
    )
    .await;
}

#[tokio::test]
async fn a_database_that_was_attached_by_a_parameter_is_gone() {
    changed(
        "hygiene-5",
        |conn| conn.execute("ATTACH ?1 AS other", [":memory:"]).map(drop),
        |conn| conn.prepare("SELECT * FROM other.sqlite_master").is_ok(),
    )
    .await;
}

#[tokio::test]
async fn a_changed_pragma_is_changed_back() {
    changed(
        "hygiene-6",
        |conn| conn.pragma_update(None, "foreign_keys", false),
        |conn| number(conn, "PRAGMA foreign_keys").unwrap() == 0,
    )
    .await;
}

#[tokio::test]
async fn the_right_to_write_is_taken_away() {
    changed(
        "hygiene-7",
        |conn| conn.execute_batch("PRAGMA query_only = 0"),
        |conn| insert(conn, 1).is_ok(),
    )
    .await;
}

#[tokio::test]
async fn an_authorizer_is_taken_away() {
    changed(
        "hygiene-8",
        |conn| conn.authorizer(Some(|_: AuthContext<'_>| Authorization::Deny)),
        |conn| conn.prepare("SELECT 1").is_err(),
    )
    .await;
}

#[tokio::test]
async fn a_progress_handler_is_taken_away() {
    changed(
        "hygiene-9",
        |conn| conn.progress_handler(1, Some(|| true)),
        |conn| number(conn, "SELECT count(*) FROM sqlite_master").is_err(),
    )
    .await;
}

#[tokio::test]
async fn a_connection_that_was_only_looked_at_is_kept_as_it_is() {
    let disk = Disk::new("hygiene-10");
    let db = one_reader(&disk).await;
    let handle = |conn: &mut Connection| {
        number(conn, "SELECT count(*) FROM pragma_table_info('t')")?;
        number(conn, "PRAGMA foreign_keys")?;
        let mut kept = conn.prepare_cached("SELECT 7")?;
        kept.exists([])?;
        Ok::<_, rusqlite::Error>(kept.get_status(rusqlite::StatementStatus::Run))
    };

    let runs = (
        db.read(handle).await.unwrap(),
        db.read(handle).await.unwrap(),
    );

    assert_eq!(runs, (1, 2), "its statements are still prepared");
}
