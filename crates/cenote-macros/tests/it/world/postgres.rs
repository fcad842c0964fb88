//! PostgreSQL. A test panics if there is no server and none can be started.

use std::sync::OnceLock;

use cenote_servers::Found;
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// A server needs no files that live as long as the test.
pub(crate) type Home = ();

pub(crate) fn builder() -> (Builder<DB>, Home) {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND
        .get_or_init(|| cenote_servers::postgres::find().unwrap_or_else(|error| panic!("{error}")));
    (Db::postgres(found.url()), ())
}

/// Writes `?` as `$1`. No statement of the suite has more than one parameter.
pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(text.replace('?', "$1"))
}
