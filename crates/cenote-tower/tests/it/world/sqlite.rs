//! SQLite, in a temporary file for each test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the database file, which is removed when it is dropped.
pub(crate) type Home = tempfile::TempDir;

pub(crate) fn builder(name: &str) -> (Builder<DB>, Home) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(name);
    let url = format!("sqlite://{}?mode=rwc", file.display());
    (Db::sqlite(url), home)
}

/// Returns the URL of the database of this name in this folder.
pub(crate) fn url(name: &str, home: &Home) -> String {
    format!("sqlite://{}", home.path().join(name).display())
}

/// A query with many rows.
pub(crate) const MANY: &str =
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 100000) SELECT n FROM n";
/// Statements that change the session, and that read 1 if it is changed.
pub(crate) const CHANGE: &str = "CREATE TEMP TABLE changed (a INTEGER)";
pub(crate) const CHANGED: &str = "SELECT count(*) FROM sqlite_temp_master";
/// The number of transactions on ten connections that can write at the same time.
pub(crate) const WRITERS: usize = 1;
/// SQLite cannot count the open transactions of other connections.
pub(crate) const OPEN: &str = "SELECT 0";
/// The count of [`OPEN`] while [`WRITERS`] transactions are open.
pub(crate) const OPEN_WRITERS: i64 = 0;
