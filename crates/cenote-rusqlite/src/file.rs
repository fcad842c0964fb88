//! The file of a database. After it was removed or replaced, a connection goes on with a file that
//! has no name, and whatever it writes is lost.

use std::path::PathBuf;

use rusqlite::Connection;

/// The file that a connection has opened.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    identity: Identity,
}

/// The device and the inode of a file.
type Identity = (u64, u64);

impl File {
    /// Returns `None` for a database in memory.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let path = PathBuf::from(connection.path().filter(|path| !path.is_empty())?);
        let identity = identity(&path)?;
        Some(Self { path, identity })
    }

    /// Returns whether the name no longer leads to this file.
    pub(crate) fn is_gone(&self) -> bool {
        identity(&self.path) != Some(self.identity)
    }
}

/// Returns the identity of the file with this name, if there is one. On systems where an open file
/// cannot be removed, the identity is not needed.
#[cfg(unix)]
fn identity(path: &std::path::Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &std::path::Path) -> Option<Identity> {
    None
}
