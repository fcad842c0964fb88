//! SQLite, in files that vanish with their test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the file.
pub(crate) type Home = tempfile::TempDir;

pub(crate) fn builder(name: &str) -> (Builder<DB>, Home) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(name);
    let url = format!("sqlite://{}?mode=rwc", file.display());
    (Db::sqlite(url), home)
}

/// Many rows.
pub(crate) const MANY: &str =
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 100000) SELECT n FROM n";
/// Changes the session, and how the change is seen.
pub(crate) const CHANGE: &str = "CREATE TEMP TABLE changed (a INTEGER)";
pub(crate) const CHANGED: &str = "SELECT count(*) FROM sqlite_temp_master";
/// How many of ten connections can be in a transaction that has written.
pub(crate) const WRITERS: usize = 1;
/// Nobody knows how many transactions are open but the pool.
pub(crate) const OPEN: &str = "SELECT 0";
/// How many it says there are then.
pub(crate) const OPEN_WRITERS: i64 = 0;
