//! PostgreSQL for the suite.

use std::sync::OnceLock;

use cenote_servers::{Found, Server, Setting};
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// A server needs no files that live as long as the test.
pub(crate) type Home = ();

/// The server that all tests share.
pub(crate) fn server() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    super::server(&FOUND, cenote_servers::postgres::find)
}

/// Without TLS, which has tests of its own.
pub(crate) fn url() -> String {
    super::with_parameter(server(), "sslmode=disable")
}

pub(crate) fn url_at((): &Home) -> String {
    url()
}

pub(crate) fn builder() -> (Builder<DB>, Home) {
    (Db::postgres(url()), ())
}

/// A builder with more parameters in its URL.
pub(crate) fn builder_with(parameters: &str) -> (Builder<DB>, Home) {
    (Db::postgres(super::with_parameter(&url(), parameters)), ())
}

/// Returns the URL of a schema, which need not exist yet.
#[cfg(feature = "sea-orm")]
pub(crate) fn inside((): &Home, schema: &str) -> String {
    super::with_parameter(&url(), &format!("options=-c%20search_path%3D{schema}"))
}

/// Statements that make an empty schema.
#[cfg(feature = "sea-orm")]
pub(crate) const FRESH: &[&str] = &[DROP, "CREATE SCHEMA {}"];

/// Starts a private server, which a test may stop, kill or fill.
pub(crate) fn start(settings: &[Setting<'_>]) -> Server {
    cenote_servers::postgres::start_with(settings).unwrap()
}

/// Returns the URL for sessions that the server shows under this mark.
pub(crate) fn marked(url: &str, mark: &str) -> String {
    super::with_parameter(url, &format!("application_name={mark}"))
}

/// Creates a user `guest` with a password, which the server asks for from now on. The superuser
/// needs none.
pub(crate) async fn lock_with_password(server: &Server, admin: &Db) {
    let rules = "host all postgres all trust\nhost all all all password\n";
    std::fs::write(server.folder().join("data/pg_hba.conf"), rules).unwrap();
    for sql in [
        "CREATE ROLE guest LOGIN SUPERUSER PASSWORD 'right'",
        "SELECT pg_reload_conf()",
    ] {
        sqlx::raw_sql(sql).execute(admin).await.unwrap();
    }
}

/// Sets the password of the user `guest`.
pub(crate) async fn set_password(admin: &Db, password: &str) {
    let sql = format!("ALTER ROLE guest PASSWORD '{password}'");
    sqlx::raw_sql(super::safe(sql))
        .execute(admin)
        .await
        .unwrap();
}

pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(super::numbered(text))
}

/// Returns a statement that gives a setting of the session this value.
pub(crate) fn setting(value: u32) -> String {
    format!("SET statement_timeout = {value}")
}

/// Returns a statement that runs for this long.
pub(crate) fn slow(seconds: u32) -> String {
    format!("SELECT pg_sleep({seconds})")
}

/// Whether a statement that is dropped before its end loses its transaction.
pub(crate) const DROP_LOSES: bool = false;
/// Text that a sandbox refuses.
pub(crate) const REFUSED: &[&str] = &[
    "COMMIT",
    "BEGIN",
    "ROLLBACK",
    "ABORT; SELECT 1",
    "COMMIT AND CHAIN",
    "VACUUM",
];
/// A query with many rows.
pub(crate) const MANY: &str = "SELECT n::bigint FROM generate_series(1, 200000) AS n";
/// Statements that change the session, that read 1 if it is changed, and that undo the change.
pub(crate) const CHANGE: &str = "SET cenote.changed = 'yes'";
pub(crate) const CHANGED: &str =
    "SELECT (coalesce(current_setting('cenote.changed', true), '') = 'yes')::int::bigint";
pub(crate) const UNDO: &str = "SET cenote.changed = 'no'";
/// Statements for the id of a connection, to kill it, and to read a sum.
pub(crate) const WHO: Option<&str> = Some("SELECT pg_backend_pid()::bigint");
pub(crate) const KILL: &str = "SELECT pg_terminate_backend({})";
pub(crate) const SUM: &str = "SELECT SUM(amount)::bigint FROM {}";
/// Queries for the number of sessions with a mark and for those that run a slow statement, and the
/// statement that drops the schema of the mark.
pub(crate) const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'";
pub(crate) const BUSY: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND state = 'active' AND query LIKE '%sleep%'";
pub(crate) const DROP: &str = "DROP SCHEMA IF EXISTS {} CASCADE";
/// Whether a migration that fails is undone.
pub(crate) const TRANSACTIONAL: bool = true;
/// Whether migrators at the same time wait for each other.
pub(crate) const MIGRATION_LOCK: bool = true;
/// Statements that begin a transaction, and a query for the isolation level of the current one.
pub(crate) const BEGINS: &[&str] = &["BEGIN", "START TRANSACTION"];
pub(crate) const LEVEL: Option<&str> =
    Some("SELECT upper(current_setting('transaction_isolation'))");
/// Statements that begin and end nothing, comments before statements, and a query that reads 1 in a
/// transaction.
pub(crate) const TEXTS: &[&str] = &[
    "SELECT 'it''s; BEGIN'",
    "SELECT $$it's; BEGIN$$ AS \"begin\"",
    "SELECT $a$ $$; COMMIT; $a$",
    r"SELECT E'\'; BEGIN; -- '",
    r"SELECT '\' AS a",
    "SAVEPOINT a",
    "DO $$ BEGIN PERFORM 1; END $$",
];
pub(crate) const COMMENTS: &[&str] = &["/* it's /* ; BEGIN */ ; COMMIT */ ", "-- it's; BEGIN\n"];
pub(crate) const OPEN: &str =
    "SELECT (transaction_timestamp() <> statement_timestamp())::int::bigint";
/// A query for the value of [`setting`].
pub(crate) const SETTING: &str =
    "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'";
/// A text that begins a transaction in a way that options cannot say.
pub(crate) const SPECIAL: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE";
/// A query whose function writes.
pub(crate) const WRITING_READ: &str = "SELECT pg_notify('{}', 'a')";
/// A mark that every server accepts.
pub(crate) const ANY_MARK: &str = "any";
/// Shortens the wait of a transaction for a lock.
pub(crate) const SHORT_WAIT: &str = "SET LOCAL lock_timeout = '100ms'";
pub(crate) const USUAL_LEVEL: &str = "READ COMMITTED";
/// Statements that change the session, each with a query that reads 1 while the change is there.
pub(crate) const LEFT: &[(&str, &str)] = &[
    (
        "SET statement_timeout = 12345",
        "SELECT count(*) FROM pg_settings WHERE name = 'statement_timeout' AND setting = '12345'",
    ),
    (
        "SELECT set_config('work_mem', '1234kB', false)",
        "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1234'",
    ),
    (
        "CREATE TEMP TABLE left_over (a int)",
        "SELECT count(*) FROM pg_class WHERE relname = 'left_over'",
    ),
    (
        "SELECT pg_advisory_lock(815)",
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    ),
    (
        "LISTEN left_over",
        "SELECT count(*) FROM pg_listening_channels()",
    ),
    (
        "PREPARE left_over AS SELECT 1",
        "SELECT count(*) FROM pg_prepared_statements WHERE name = 'left_over'",
    ),
    (
        "BEGIN; DECLARE left_over CURSOR WITH HOLD FOR SELECT 1; COMMIT",
        "SELECT count(*) FROM pg_cursors WHERE name = 'left_over'",
    ),
    (
        "SET search_path = pg_catalog",
        "SELECT count(*) FROM pg_settings WHERE name = 'search_path' AND setting = 'pg_catalog'",
    ),
    (
        "SET ROLE pg_monitor",
        "SELECT (current_user = 'pg_monitor')::int::bigint",
    ),
    (
        "SET SESSION AUTHORIZATION pg_monitor",
        "SELECT (session_user = 'pg_monitor')::int::bigint",
    ),
    (
        "START TRANSACTION; SET LOCAL work_mem = '1235kB'",
        "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1235'",
    ),
    (
        "UPDATE pg_settings SET setting = '7168' WHERE name = 'work_mem'",
        "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '7168'",
    ),
    (
        r#"SELECT U&"set\005fconfig"('work_mem', '1236kB', false)"#,
        "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1236'",
    ),
    (
        r#"SELECT U&"set!005fconfig" UESCAPE '!' ('work_mem', '1237kB', false)"#,
        "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1237'",
    ),
    (
        "SELECT query_to_xml('SELECT set' || '_config(''work_mem'', ''1238kB'', false)', true, true, '')",
        "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1238'",
    ),
    (
        "START TRANSACTION READ ONLY",
        "SELECT count(*) FROM pg_settings WHERE name = 'transaction_read_only' AND setting = 'on'",
    ),
];
/// Whether a changed session is reset, so that its connection is kept.
pub(crate) const RESETS: bool = true;
