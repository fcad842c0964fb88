//! The budget of connections that all test processes of a machine share: files in the temporary
//! folder, of which each connection locks one. The kernel unlocks the files of a killed process.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::Error;

/// How long a waiter rests before it looks at the files again.
const REST: Duration = Duration::from_millis(2);

/// The longest part of a place that its folder is called by.
const LONGEST_NAME: usize = 100;

/// The right to have one connection. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _file: File,
}

/// The files of one server or database file.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    folder: PathBuf,
    size: usize,
}

impl Budget {
    pub(crate) fn of(place: &str, size: usize) -> Result<Self, Error> {
        let letters: Vec<char> = place.chars().collect();
        let end = &letters[letters.len().saturating_sub(LONGEST_NAME)..];
        let plain = |letter: &char| match letter.is_ascii_alphanumeric() || *letter == '.' {
            true => *letter,
            false => '-',
        };
        let name: String = end.iter().map(plain).collect();
        let folder = std::env::temp_dir().join("cenote-sandbox").join(name);
        fs::create_dir_all(&folder).map_err(|error| at(&folder, error))?;
        Ok(Self { folder, size })
    }

    /// Takes this many slots, with their numbers. Callers of all processes wait in one line, and
    /// only its head looks for slots. So two callers that have taken a part each cannot wait for
    /// each other.
    ///
    /// It polls: a wait for a file lock would hold a thread, and could not be given up.
    pub(crate) async fn take(&self, count: usize) -> Result<Vec<(usize, Slot)>, Error> {
        let mut slots = Vec::new();
        let mut head = None;
        loop {
            if head.is_none() {
                head = self.lock(&self.line())?;
            }
            if head.is_some() {
                for number in 0..self.size {
                    if slots.len() < count {
                        slots.extend(self.try_take(number)?.map(|slot| (number, slot)));
                    }
                }
            }
            if slots.len() == count {
                return Ok(slots);
            }
            tokio::time::sleep(REST).await;
        }
    }

    /// Takes this slot, unless another caller has it.
    pub(crate) fn try_take(&self, number: usize) -> Result<Option<Slot>, Error> {
        let file = self.lock(&self.folder.join(format!("slot-{number}")))?;
        Ok(file.map(|file| Slot { _file: file }))
    }

    /// Waits until no other caller has the lock of this name.
    #[cfg(feature = "macros")]
    pub(crate) async fn exclusive(&self, name: &str) -> Result<File, Error> {
        loop {
            if let Some(file) = self.lock(&self.folder.join(name))? {
                return Ok(file);
            }
            tokio::time::sleep(REST).await;
        }
    }

    #[cfg(feature = "macros")]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether a caller waits, here or in another process.
    pub(crate) fn is_short(&self) -> bool {
        !matches!(self.lock(&self.line()), Ok(Some(_)))
    }

    fn line(&self) -> PathBuf {
        self.folder.join("line")
    }

    /// Locks the file, unless another caller has it.
    fn lock(&self, path: &Path) -> Result<Option<File>, Error> {
        let file = File::options().create(true).append(true).open(path);
        let file = file.map_err(|error| at(path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(at(path, error)),
        }
    }
}

fn at(path: &Path, error: io::Error) -> Error {
    let text = format!(
        "the connections of tests are counted in `{}`: {error}; set `TMPDIR` to a folder that is yours",
        path.display()
    );
    Error::Io(io::Error::new(error.kind(), text))
}

#[cfg(test)]
mod tests;
