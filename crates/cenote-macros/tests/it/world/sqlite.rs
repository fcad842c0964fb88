//! SQLite, in a temporary file for each test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the database file, which is removed when it is dropped.
pub(crate) type Home = tempfile::TempDir;

pub(crate) fn builder() -> (Builder<DB>, Home) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("test.db");
    let url = format!("sqlite://{}?mode=rwc", file.display());
    (Db::sqlite(url), home)
}

pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(text.to_owned())
}
