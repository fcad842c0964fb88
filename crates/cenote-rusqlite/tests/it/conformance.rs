//! The suite for managers. A SQLite connection has no server that could kill it; a panic does.

use cenote_rusqlite::Session;
use cenote_rusqlite::rusqlite::{self, Connection};
use cenote_testkit::conformance::Conformance;

use crate::{Disk, times_open};

async fn kill(session: &mut Session) {
    let killed = session.call(|_| -> rusqlite::Result<()> { panic!("killed by the suite") });
    killed.await.unwrap_err();
}

/// Runs the suite, with dirt of this kind.
async fn conforms(
    name: &str,
    make: fn(&mut Connection) -> rusqlite::Result<()>,
    is_there: fn(&mut Connection) -> rusqlite::Result<bool>,
) {
    let disk = Disk::new(name);
    let db = disk.db().await;
    let manager = db.pool().annex().unwrap().manager().clone();
    drop(db);
    crate::eventually("closed", || times_open(&disk.path) == 0).await;
    let path = disk.path.clone();

    Conformance::new(manager)
        .limit(std::time::Duration::from_secs(60))
        .kill(kill)
        .dirty(
            async move |session: &mut Session| session.call(make).await.unwrap(),
            async move |session: &mut Session| session.call(is_there).await.unwrap(),
        )
        .count(async move || times_open(&path))
        .run()
        .await;
}

#[tokio::test]
async fn sessions_with_open_transactions_conform() {
    conforms(
        "conforms-1",
        |conn| conn.execute_batch("BEGIN"),
        |conn| Ok(!conn.is_autocommit()),
    )
    .await;
}

#[tokio::test]
async fn sessions_with_temporary_tables_conform() {
    conforms(
        "conforms-2",
        |conn| conn.execute_batch("CREATE TEMP TABLE mine (n)"),
        |conn| conn.table_exists(Some("temp"), "mine"),
    )
    .await;
}
