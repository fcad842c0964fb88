//! PostgreSQL.

use std::sync::OnceLock;

use cenote_servers::Found;
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// Nothing to keep.
pub(crate) type Home = ();

pub(crate) fn url() -> String {
    static FOUND: OnceLock<Found> = OnceLock::new();
    super::server(&FOUND, cenote_servers::postgres::find).to_owned()
}

pub(crate) fn builder() -> (Builder<DB>, Home) {
    (Db::postgres(url()), ())
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
/// Changes the session, and how the change is seen.
pub(crate) const CHANGE: &str = "SET cenote.changed = 'yes'";
pub(crate) const CHANGED: &str =
    "SELECT (coalesce(current_setting('cenote.changed', true), '') = 'yes')::int::bigint";
/// Who runs this connection, how it is killed, and what a sum is read as.
pub(crate) const WHO: Option<&str> = Some("SELECT pg_backend_pid()::bigint");
pub(crate) const KILL: &str = "SELECT pg_terminate_backend({})";
pub(crate) const SUM: &str = "SELECT SUM(amount)::bigint FROM {}";
