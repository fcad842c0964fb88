//! SQLite, in files that vanish with their test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the file.
pub(crate) type Home = tempfile::TempDir;

pub(crate) fn builder() -> (Builder<DB>, Home) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("test.db");
    (
        Db::sqlite(format!("sqlite://{}?mode=rwc", file.display())),
        home,
    )
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
/// Changes the session, and how the change is seen.
pub(crate) const CHANGE: &str = "CREATE TEMP TABLE changed (a INTEGER)";
pub(crate) const CHANGED: &str = "SELECT count(*) FROM sqlite_temp_master";
/// Nobody runs a connection but the driver, so nobody can kill it. And what a sum is read as.
pub(crate) const WHO: Option<&str> = None;
pub(crate) const KILL: &str = "SELECT {}";
pub(crate) const SUM: &str = "SELECT SUM(amount) FROM {}";
/// Is a migration that fails undone by itself?
pub(crate) const TRANSACTIONAL: bool = true;
/// Do those who migrate at the same time wait for each other?
pub(crate) const MIGRATION_LOCK: bool = false;
