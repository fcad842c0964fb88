//! The error of both managers.

use std::error::Error as StdError;
use std::fmt;

use cenote::error::ErrorClass;
use diesel::ConnectionError;
use diesel::result::DatabaseErrorKind as Kind;

/// Why a connection could not be opened, checked or cleaned.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Manager;
/// use cenote_diesel::diesel::SqliteConnection;
/// use cenote_diesel::{Blocking, Error};
///
/// let manager = Blocking::<SqliteConnection>::new("/no/such/folder/shop.db");
/// assert!(matches!(manager.open().await, Err(Error::Open(_))));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection could not be opened.
    Open(ConnectionError),
    /// A statement of the pool has failed: the check, the rollback or the reset.
    Query(diesel::result::Error),
    /// The connection cannot be used again: a closure has panicked on it, or a future was dropped
    /// while a transaction began or ended.
    Unfit,
}

impl Error {
    pub(crate) fn class(&self) -> ErrorClass {
        use diesel::result::Error::DatabaseError;
        let query = match self {
            Self::Open(ConnectionError::BadConnection(_)) => return ErrorClass::Unreachable,
            Self::Open(ConnectionError::CouldntSetupConfiguration(error)) => error,
            Self::Query(error) => error,
            _ => return ErrorClass::Other,
        };
        match query {
            DatabaseError(Kind::UnableToSendCommand | Kind::ClosedConnection, _) => {
                ErrorClass::Unreachable
            }
            _ => ErrorClass::Other,
        }
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::Open(error)
    }
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Query(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "cannot open a connection: {error}"),
            Self::Query(error) => write!(f, "a statement of the pool failed: {error}"),
            Self::Unfit => f.write_str("the connection was left in an unknown state"),
        }
    }
}

impl StdError for Error {
    /// The text contains the error below, so the source is the one below that.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Open(error) => error.source(),
            Self::Query(error) => error.source(),
            Self::Unfit => None,
        }
    }
}
