//! SQLite, in files that vanish with their test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the file.
pub(crate) type Home = tempfile::TempDir;

pub(crate) fn builder() -> (Builder<DB>, Home) {
    builder_with("cache=private")
}

/// With more parameters in its URL.
pub(crate) fn builder_with(parameters: &str) -> (Builder<DB>, Home) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("test.db");
    let url = format!("sqlite://{}?mode=rwc&{parameters}", file.display());
    (Db::sqlite(url), home)
}

pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(text.to_owned())
}

/// Runs for about this long, or longer.
pub(crate) fn slow(seconds: u32) -> String {
    let steps = 2_000_000 * u64::from(seconds);
    format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {steps}) SELECT count(*) FROM n"
    )
}

/// Many rows.
pub(crate) const MANY: &str =
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 200000) SELECT n FROM n";
/// Changes the session, how the change is seen, and how it is undone.
pub(crate) const CHANGE: &str = "CREATE TEMP TABLE changed (a INTEGER)";
pub(crate) const CHANGED: &str = "SELECT count(*) FROM sqlite_temp_master";
pub(crate) const UNDO: &str = "DROP TABLE temp.changed";
/// Nobody runs a connection but the driver, so nobody can kill it. And what a sum is read as.
pub(crate) const WHO: Option<&str> = None;
pub(crate) const KILL: &str = "SELECT {}";
pub(crate) const SUM: &str = "SELECT SUM(amount) FROM {}";
/// Is a migration that fails undone by itself?
pub(crate) const TRANSACTIONAL: bool = true;
/// Do those who migrate at the same time wait for each other?
pub(crate) const MIGRATION_LOCK: bool = false;
/// How a transaction is begun by SQL, and what tells the isolation level of the one that runs.
pub(crate) const BEGINS: &[&str] = &["BEGIN", "BEGIN IMMEDIATE"];
pub(crate) const LEVEL: Option<&str> = None;
pub(crate) const USUAL_LEVEL: &str = "SERIALIZABLE";
