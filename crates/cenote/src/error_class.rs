//! Classes of errors, by which a strategy tells a wrong password from a refused connection.

use std::any::Any;
use std::io;

/// What kind of error a manager met, for the breaker's [`Strategy`](crate::breaker::Strategy). See
/// [`Manager::classify`](crate::Manager::classify).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The backend cannot be reached: refused, reset, or no route to it.
    Unreachable,
    /// The backend was reached and said no: a wrong password, or no such database.
    Denied,
    /// The backend has too many connections already, or too much to do.
    Overloaded,
    /// The callback took longer than its time limit. The pool says so, and no manager has to.
    TimedOut,
    /// The callback panicked. The pool says so, and no manager has to.
    Panicked,
    /// The manager called the open off, because no caller needs the resource any more. That is no
    /// failure: nothing counts it, and no caller is told. If a caller waits for it by then, the
    /// open is tried again after a short pause.
    CalledOff,
    /// Any other error.
    #[default]
    Other,
}

impl ErrorClass {
    /// Returns the class of an error of the operating system, for managers that find one among the
    /// causes of their own error.
    ///
    /// ```
    /// use std::io;
    /// use cenote::error::ErrorClass;
    ///
    /// let refused = io::ErrorKind::ConnectionRefused.into();
    /// assert_eq!(ErrorClass::of_io(&refused), ErrorClass::Unreachable);
    /// ```
    pub fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::BrokenPipe
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::AddrNotAvailable
            | Kind::UnexpectedEof
            | Kind::TimedOut => Self::Unreachable,
            Kind::PermissionDenied => Self::Denied,
            _ => Self::Other,
        }
    }

    /// The class of an error of any type: of an `io::Error` the class of its kind.
    pub(crate) fn of_any(error: &dyn Any) -> Self {
        error.downcast_ref().map_or(Self::Other, Self::of_io)
    }
}
