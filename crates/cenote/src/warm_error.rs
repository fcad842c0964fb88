//! The error of a warm-up.

use std::error::Error;
use std::fmt;

use crate::error::OpenError;

/// Why a warm-up failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::{Pool, WarmError};
///
/// let pool = Pool::from_fn(async || Err::<(), _>("connection refused")).build()?;
/// let error = pool.warm().await.unwrap_err();
/// assert!(matches!(error, WarmError::Open(_)));
/// assert!(error.to_string().ends_with("opening failed: connection refused"));
///
/// pool.close();
/// assert!(matches!(pool.warm().await, Err(WarmError::Closed)));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum WarmError<E> {
    /// A resource could not be opened.
    Open(OpenError<E>),
    /// The pool was closed meanwhile.
    Closed,
    /// A [`LocalPool`](crate::local::LocalPool) was warmed up outside of a `LocalSet`.
    NoLocalSet,
}

impl<E> fmt::Display for WarmError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "the pool could not be warmed up: {error}"),
            Self::Closed => f.write_str("the pool was closed while it was warmed up"),
            Self::NoLocalSet => f.write_str("the pool cannot start its tasks: use a `LocalSet`"),
        }
    }
}

impl<E: fmt::Debug + 'static> Error for WarmError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(error) => error.source(),
            Self::Closed | Self::NoLocalSet => None,
        }
    }
}
