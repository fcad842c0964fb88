//! PostgreSQL. A test panics if there is no server and none can be started.

use std::sync::OnceLock;

use cenote_servers::Found;
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// A server needs no files that live as long as the test.
pub(crate) type Home = ();

/// The URL of the server, which is kept until the end of the process.
pub(crate) fn server() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let find = || cenote_servers::postgres::find().unwrap_or_else(|error| panic!("{error}"));
    FOUND.get_or_init(find).url()
}

/// `name` is the application name of the connections of one test.
pub(crate) fn builder(name: &str) -> (Builder<DB>, Home) {
    (Db::postgres(url(name, &())), ())
}

/// Returns the URL of the server, with this application name.
pub(crate) fn url(name: &str, (): &Home) -> String {
    let url = server();
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}application_name={name}")
}

/// A query with many rows.
pub(crate) const MANY: &str = "SELECT n::bigint FROM generate_series(1, 100000) AS n";
/// Statements that change the session, and that read 1 if it is changed.
pub(crate) const CHANGE: &str = "SET cenote.changed = 'yes'";
pub(crate) const CHANGED: &str =
    "SELECT (coalesce(current_setting('cenote.changed', true), '') = 'yes')::int::bigint";
/// The number of transactions on ten connections that can write at the same time.
pub(crate) const WRITERS: usize = 10;
/// Counts the open transactions of the application `{}` on the server.
pub(crate) const OPEN: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE application_name = '{}' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
/// The count of [`OPEN`] while [`WRITERS`] transactions are open.
pub(crate) const OPEN_WRITERS: i64 = 10;
