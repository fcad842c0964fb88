//! Errors of services whose causes the layers can look at.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;

use cenote::AcquireError;
use cenote::scope::BindError;

use crate::problem::Problem;

/// An error of a service whose causes [`ProblemLayer`](crate::ProblemLayer) can look at.
///
/// ```
/// use std::error::Error;
/// use cenote_tower::ServiceError;
///
/// #[derive(Debug)]
/// struct Failure(cenote::AcquireError<std::io::Error>);
/// # impl std::fmt::Display for Failure {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
/// # }
///
/// impl Error for Failure {
///     fn source(&self) -> Option<&(dyn Error + 'static)> { Some(&self.0) }
/// }
///
/// impl ServiceError for Failure {
///     fn as_dyn(&self) -> &(dyn Error + 'static) { self }
/// }
///
/// let failure = Failure(cenote::AcquireError::Closed { pool: "rooms".into() });
/// assert!(failure.as_dyn().source().is_some());
/// ```
pub trait ServiceError {
    /// Returns the error.
    fn as_dyn(&self) -> &(dyn Error + 'static);
}

impl ServiceError for Box<dyn Error + Send + Sync> {
    fn as_dyn(&self) -> &(dyn Error + 'static) {
        &**self
    }
}

macro_rules! service_error {
    ($([$($generics:tt)*] $type:ty),+ $(,)?) => {$(
        impl<$($generics)*> ServiceError for $type {
            fn as_dyn(&self) -> &(dyn Error + 'static) {
                self
            }
        }
    )+};
}

service_error!(
    [] Infallible,
    [] io::Error,
    [] Problem,
    [E: fmt::Debug + 'static] AcquireError<E>,
    [E: fmt::Debug + 'static] BindError<E>,
);
#[cfg(feature = "sqlx")]
service_error!([] sqlx::Error);
