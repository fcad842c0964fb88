//! Where a database is: in a file, or in memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, OpenFlags};

use crate::build_error::BuildError;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// A file by its name, which is taken as it is.
    File(PathBuf),
    /// A URI of SQLite: `file:shop.db?mode=ro`.
    Uri(String),
    /// In the memory of this process. All connections share the database by its URI, and it lives
    /// as long as one of them.
    Memory(String),
}

impl Place {
    /// Returns a new database in memory.
    pub(crate) fn memory() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        // SQLite shares a database of this VFS if its name begins with a slash.
        Self::Memory(format!("file:/cenote-in-memory-{number}?vfs=memdb"))
    }

    /// Reads a URL: `file:shop.db?mode=ro`, `sqlite://shop.db`, `:memory:`, or the name of a file.
    pub(crate) fn read(url: &str) -> Result<Self, BuildError> {
        let rest = match url.split_once(':') {
            Some(("sqlite", rest)) => rest.strip_prefix("//").unwrap_or(rest),
            Some(("file", rest)) => rest,
            Some((scheme, rest)) if rest.starts_with("//") => {
                return Err(BuildError::Scheme(scheme.to_owned()));
            }
            _ if is_private_memory(url) => return Ok(Self::memory()),
            _ => return Ok(Self::File(PathBuf::from(url))),
        };
        let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
        let has = |parameter| query.split('&').any(|pair| pair == parameter);
        if let Some(pair) = query.split('&').find(|pair| pair.starts_with("cenote.")) {
            return Err(BuildError::Parameter(pair.to_owned()));
        }
        if has("cache=shared") {
            return Err(BuildError::SharedCache);
        }
        if has("vfs=memdb") && name.starts_with('/') {
            return Ok(Self::Memory(format!("file:{rest}")));
        }
        if is_private_memory(name) || has("mode=memory") || has("vfs=memdb") {
            return Ok(Self::memory());
        }
        Ok(Self::Uri(format!("file:{rest}")))
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    pub(crate) fn open(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        match self {
            Self::File(path) => {
                Connection::open_with_flags(path, flags - OpenFlags::SQLITE_OPEN_URI)
            }
            Self::Uri(uri) | Self::Memory(uri) => {
                Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
            }
        }
    }

    /// Returns a name for threads: the name of the file, without its folder.
    pub(crate) fn short_name(&self) -> String {
        let path = match self {
            Self::File(path) => path.as_path(),
            Self::Uri(uri) | Self::Memory(uri) => {
                let name = uri.strip_prefix("file:").unwrap_or(uri);
                Path::new(name.split_once('?').map_or(name, |(name, _)| name))
            }
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.replace('\0', "")
    }
}

/// Returns whether each connection to a database of this name would have a database of its own.
/// Without a name it is a file that is removed with its connection.
fn is_private_memory(name: &str) -> bool {
    matches!(name, "" | ":memory:")
}

#[cfg(test)]
mod tests;
