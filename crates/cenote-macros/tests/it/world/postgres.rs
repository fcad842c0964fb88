//! PostgreSQL. Nobody there, and none to be had: a loud failure.

use std::sync::OnceLock;

use cenote_servers::Found;
use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Postgres;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// Nothing to keep.
pub(crate) type Home = ();

pub(crate) fn builder() -> (Builder<DB>, Home) {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND
        .get_or_init(|| cenote_servers::postgres::find().unwrap_or_else(|error| panic!("{error}")));
    (Db::postgres(found.url()), ())
}

/// `?` is `$1` here; no statement of the suite has more.
pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(text.replace('?', "$1"))
}
