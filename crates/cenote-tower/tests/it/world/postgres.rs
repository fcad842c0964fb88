//! PostgreSQL.

use std::sync::OnceLock;

use cenote_servers::Found;
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// Nothing to keep.
pub(crate) type Home = ();

/// The connections of one test go by its name.
pub(crate) fn builder(name: &str) -> (Builder<DB>, Home) {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let find = || cenote_servers::postgres::find().unwrap_or_else(|error| panic!("{error}"));
    let url = FOUND.get_or_init(find).url();
    let sign = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{sign}application_name={name}");
    (Db::postgres(url), ())
}

/// Many rows.
pub(crate) const MANY: &str = "SELECT n::bigint FROM generate_series(1, 100000) AS n";
/// Changes the session, and how the change is seen.
pub(crate) const CHANGE: &str = "SET cenote.changed = 'yes'";
pub(crate) const CHANGED: &str =
    "SELECT (coalesce(current_setting('cenote.changed', true), '') = 'yes')::int::bigint";
/// How many of ten connections can be in a transaction that has written.
pub(crate) const WRITERS: usize = 10;
/// How many transactions are open by the server's own word, in connections of the name `{}`.
pub(crate) const OPEN: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE application_name = '{}' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
/// How many it says there are then.
pub(crate) const OPEN_WRITERS: i64 = 10;
