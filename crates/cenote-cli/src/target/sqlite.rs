//! SQLite by cenote-rusqlite.

use std::path::{Path, PathBuf};

use cenote::Config;
use cenote_rusqlite::Db;

use crate::failure::{Failure, usage, whole_story};

/// Builds a pool on a database that exists, and opens a first connection.
pub(crate) async fn open(url: &str, config: Config) -> Result<Db, Failure> {
    if let Some(path) = file(url).filter(|path| !path.exists()) {
        let path = path.display();
        return Err(
            format!("there is no file `{path}`: check the path, or make the database").into(),
        );
    }
    let db = Db::url(url).config(config).build();
    let db = db.map_err(|error| usage(error.to_string()))?;
    if let Err(error) = db.warm().await {
        let story = whole_story(&error);
        return Err(format!("no connection to {url}: {story}; check path and permissions").into());
    }
    Ok(db)
}

/// Returns the file of a database, if it is in a file.
pub(crate) fn file(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("sqlite://").or(url.strip_prefix("file:"));
    let rest = rest.map_or(url, |rest| {
        rest.split(['?', '#']).next().unwrap_or_default()
    });
    let in_memory =
        rest.contains(":memory:") || url.contains("mode=memory") || url.contains("vfs=memdb");
    let path = rest
        .strip_prefix("//")
        .map_or(rest, |rest| &rest[rest.find('/').unwrap_or(0)..]);
    (!in_memory && !path.is_empty()).then(|| Path::new(path).to_owned())
}
