//! SQLite for the suite, in a temporary file for each test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the database file, which is removed when it is dropped.
pub(crate) type Home = tempfile::TempDir;

pub(crate) fn builder() -> (Builder<DB>, Home) {
    builder_with("cache=private")
}

/// A builder with more parameters in its URL.
pub(crate) fn builder_with(parameters: &str) -> (Builder<DB>, Home) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("test.db");
    let url = format!("sqlite://{}?mode=rwc&{parameters}", file.display());
    (Db::sqlite(url), home)
}

/// Returns the URL of the database in this folder.
pub(crate) fn url_at(home: &Home) -> String {
    format!("sqlite://{}", home.path().join("test.db").display())
}

/// Returns the URL of the database in this folder, which has no schemas.
#[cfg(feature = "sea-orm")]
pub(crate) fn inside(home: &Home, _: &str) -> String {
    format!("{}?mode=rwc", url_at(home))
}

/// Statements that make an empty schema.
#[cfg(feature = "sea-orm")]
pub(crate) const FRESH: &[&str] = &[];

pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(text.to_owned())
}

/// Returns a statement that runs for about this long, or longer.
pub(crate) fn slow(seconds: u32) -> String {
    let steps = 2_000_000 * u64::from(seconds);
    format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {steps}) SELECT count(*) FROM n"
    )
}

/// Whether a statement that is dropped before its end loses its transaction.
pub(crate) const DROP_LOSES: bool = false;
/// Text that a sandbox refuses.
pub(crate) const REFUSED: &[&str] = &["COMMIT", "BEGIN", "ROLLBACK", "END; SELECT 1"];
/// A query with many rows.
pub(crate) const MANY: &str =
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 200000) SELECT n FROM n";
/// Statements that change the session, that read 1 if it is changed, and that undo the change.
pub(crate) const CHANGE: &str = "CREATE TEMP TABLE changed (a INTEGER)";
pub(crate) const CHANGED: &str = "SELECT count(*) FROM sqlite_temp_master";
/// Statements that begin and end nothing, comments before statements, and a query that reads 1 in a
/// transaction, or fails there.
pub(crate) const TEXTS: &[&str] = &[
    "SELECT 'it''s; BEGIN'",
    "SELECT 1 AS [it's; BEGIN]",
    "SELECT 2 AS `it's; COMMIT`, 3 AS \"it's; BEGIN\"",
    r"SELECT '\' AS a",
    "SAVEPOINT a",
    "RELEASE a",
    "DROP TRIGGER IF EXISTS b",
];
pub(crate) const COMMENTS: &[&str] = &["/* it's /* ; BEGIN */ ", "-- it's; BEGIN\n"];
pub(crate) const OPEN: &str = "PRAGMA synchronous = 1; SELECT 0";
pub(crate) const UNDO: &str = "DROP TABLE temp.changed";
/// Statements for the id of a connection, to kill it, and to read a sum. A connection of SQLite has
/// no id and cannot be killed.
pub(crate) const WHO: Option<&str> = None;
pub(crate) const KILL: &str = "SELECT {}";
pub(crate) const SUM: &str = "SELECT SUM(amount) FROM {}";
/// Whether a migration that fails is undone.
pub(crate) const TRANSACTIONAL: bool = true;
/// Whether migrators at the same time wait for each other.
pub(crate) const MIGRATION_LOCK: bool = false;
/// Statements that begin a transaction, and a query for the isolation level of the current one.
/// A query for the value of [`setting`].
pub(crate) const SETTING: &str = "PRAGMA cache_size";
/// A text that begins a transaction in a way that options cannot say.
pub(crate) const SPECIAL: &str = "BEGIN EXCLUSIVE";
pub(crate) const BEGINS: &[&str] = &["BEGIN", "BEGIN IMMEDIATE"];
pub(crate) const LEVEL: Option<&str> = None;
pub(crate) const USUAL_LEVEL: &str = "SERIALIZABLE";
/// Statements that change the session, each with a query that reads 1 while the change is there.
pub(crate) const LEFT: &[(&str, &str)] = &[
    (
        "CREATE TEMP TABLE left_over (a INTEGER)",
        "SELECT count(*) FROM sqlite_temp_schema",
    ),
    (
        "CREATE TEMPORARY VIEW left_over AS SELECT 1",
        "SELECT count(*) FROM sqlite_temp_schema",
    ),
    (
        "ATTACH ':memory:' AS left_over",
        "SELECT count(*) FROM pragma_database_list WHERE name = 'left_over'",
    ),
    (
        "PRAGMA recursive_triggers = 1",
        "SELECT recursive_triggers FROM pragma_recursive_triggers",
    ),
    (
        "PRAGMA query_only = 1",
        "SELECT query_only FROM pragma_query_only",
    ),
    (
        "PRAGMA foreign_keys = 0",
        "SELECT 1 - foreign_keys FROM pragma_foreign_keys",
    ),
];
/// Whether a changed session is reset, so that its connection is kept.
pub(crate) const RESETS: bool = false;

/// Reads a number.
pub(crate) async fn number(db: &Db, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

/// Runs statements that succeed.
pub(crate) async fn run(db: &Db, sql: &'static str) {
    sqlx::raw_sql(sql).execute(db).await.unwrap();
}

/// Returns a statement that gives a setting of the session this value.
pub(crate) fn setting(value: u32) -> String {
    format!("PRAGMA cache_size = {value}")
}
