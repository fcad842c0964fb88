//! PostgreSQL.

use std::sync::OnceLock;

use cenote_servers::{Found, Server, Setting};
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// Nothing to keep.
pub(crate) type Home = ();

/// The server that all tests share.
pub(crate) fn server() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    super::server(&FOUND, cenote_servers::postgres::find)
}

/// In the plain: TLS has tests of its own.
pub(crate) fn url() -> String {
    super::with_parameter(server(), "sslmode=disable")
}

pub(crate) fn builder() -> (Builder<DB>, Home) {
    (Db::postgres(url()), ())
}

/// With more parameters in its URL.
pub(crate) fn builder_with(parameters: &str) -> (Builder<DB>, Home) {
    (Db::postgres(super::with_parameter(&url(), parameters)), ())
}

/// A private server, to be stopped, killed or starved.
pub(crate) fn start(settings: &[Setting<'_>]) -> Server {
    cenote_servers::postgres::start_with(settings).unwrap()
}

/// The same server, for sessions that it shows under this mark.
pub(crate) fn marked(url: &str, mark: &str) -> String {
    super::with_parameter(url, &format!("application_name={mark}"))
}

/// Makes a user `guest` with a password, which this server asks for from now on. Whoever owns the server needs none.
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

/// Of that user.
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

/// Runs for this long.
pub(crate) fn slow(seconds: u32) -> String {
    format!("SELECT pg_sleep({seconds})")
}

/// Many rows.
pub(crate) const MANY: &str = "SELECT n::bigint FROM generate_series(1, 200000) AS n";
/// Changes the session, how the change is seen, and how it is undone.
pub(crate) const CHANGE: &str = "SET cenote.changed = 'yes'";
pub(crate) const CHANGED: &str =
    "SELECT (coalesce(current_setting('cenote.changed', true), '') = 'yes')::int::bigint";
pub(crate) const UNDO: &str = "SET cenote.changed = 'no'";
/// Who runs this connection, how it is killed, and what a sum is read as.
pub(crate) const WHO: Option<&str> = Some("SELECT pg_backend_pid()::bigint");
pub(crate) const KILL: &str = "SELECT pg_terminate_backend({})";
pub(crate) const SUM: &str = "SELECT SUM(amount)::bigint FROM {}";
/// How many sessions there are under a mark, how many of them run what is slow, and how its schema is dropped.
pub(crate) const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'";
pub(crate) const BUSY: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND state = 'active' AND query LIKE '%sleep%'";
pub(crate) const DROP: &str = "DROP SCHEMA IF EXISTS {} CASCADE";
/// Is a migration that fails undone by itself?
pub(crate) const TRANSACTIONAL: bool = true;
/// Do those who migrate at the same time wait for each other?
pub(crate) const MIGRATION_LOCK: bool = true;
/// How a transaction is begun by SQL, and what tells the isolation level of the one that runs.
pub(crate) const BEGINS: &[&str] = &["BEGIN", "START TRANSACTION"];
pub(crate) const LEVEL: Option<&str> =
    Some("SELECT upper(current_setting('transaction_isolation'))");
/// A mark that every server has.
pub(crate) const ANY_MARK: &str = "any";
/// Makes a transaction wait for a lock for a short time only.
pub(crate) const SHORT_WAIT: &str = "SET LOCAL lock_timeout = '100ms'";
pub(crate) const USUAL_LEVEL: &str = "READ COMMITTED";
