//! SQLite, in files that vanish with their test.

use cenote_sqlx::Builder;

pub(crate) type DB = sqlx::Sqlite;
pub(crate) type Db = cenote_sqlx::Db<DB>;

/// The folder of the file.
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
