//! The option `retry`: when a function runs again, and how its error is found.

use std::error::Error as StdError;
use std::time::Duration;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::retry::{Retry, is_conflict};

/// Counts the tries of a function with `retry`.
#[derive(Debug)]
pub struct Tries {
    retry: Retry,
    left: u32,
    tried: u32,
}

impl Tries {
    /// Allows one try inside a transaction, because only the outermost one can be repeated.
    pub fn new<DB: Dialect>(db: &Db<DB>, retry: Retry) -> Self {
        let attempts = if db.in_transaction() {
            1
        } else {
            retry.attempts
        };
        Self {
            retry,
            left: attempts.saturating_sub(1),
            tried: 0,
        }
    }

    /// Returns how long to rest before the next try, or `None` if `end` is final.
    pub fn rest<DB: Dialect, R: Again<By>, By>(&mut self, _: &Db<DB>, end: &R) -> Option<Duration> {
        if self.left == 0 || !end.cause().is_some_and(is_conflict::<DB>) {
            return None;
        }
        self.left -= 1;
        self.tried += 1;
        Some(self.retry.rest(self.tried))
    }
}

/// Rests between two tries.
pub async fn rest(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// The value of a function with `retry`: it shows the error behind it. `By` tells the
/// implementations apart, which would overlap otherwise.
#[diagnostic::on_unimplemented(
    message = "`retry` cannot tell why a function that returns `{Self}` failed",
    label = "shows no cause",
    note = "return `Result<T, E>` whose `E` implements `std::error::Error`, or is `anyhow::Error` or a boxed error"
)]
pub trait Again<By> {
    /// Returns the error, if it is one.
    fn cause(&self) -> Option<&(dyn StdError + 'static)>;
}

/// The error is a `std::error::Error`.
#[derive(Debug)]
pub enum ByType {}

/// The error is a box of one, or a type like `anyhow::Error`.
#[derive(Debug)]
pub enum ByBox {}

/// The error is a box of one that is not `Send`.
#[derive(Debug)]
pub enum ByLocalBox {}

impl<T, E: StdError + 'static> Again<ByType> for Result<T, E> {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.as_ref().err().map(|error| error as _)
    }
}

impl<T, E: AsRef<dyn StdError + Send + Sync>> Again<ByBox> for Result<T, E> {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.as_ref().err().map(|error| error.as_ref() as _)
    }
}

impl<T> Again<ByLocalBox> for Result<T, Box<dyn StdError>> {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.as_ref().err().map(|error| &**error)
    }
}
