//! The databases that the suite runs on. A test panics if there is no server and none can be
//! started.

pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::io;
use std::sync::OnceLock;

use cenote_servers::Found;

/// Returns the URL of a real server, which is found or started once.
fn server(found: &'static OnceLock<Found>, find: fn() -> io::Result<Found>) -> &'static str {
    let found = found.get_or_init(|| find().unwrap_or_else(|error| panic!("{error}")));
    found.url()
}

/// Adds a parameter to the URL.
pub(crate) fn with_parameter(url: &str, parameter: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{parameter}")
}

/// Writes each `?` as `$1`, `$2` and so on, as PostgreSQL expects it.
pub(crate) fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        numbered.push_str(&format!("${}{part}", index + 1));
    }
    numbered
}

/// Replaces the user of the URL.
pub(crate) fn as_user(url: &str, user: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let (_, server) = rest.split_once('@').expect("the URLs of tests name a user");
    format!("{scheme}://{user}@{server}")
}

fn safe(text: String) -> sqlx::SqlStr {
    sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(text))
}
