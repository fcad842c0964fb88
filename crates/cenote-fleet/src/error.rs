//! Why a pool could not join, and why a round of a member has failed.

use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::time::Duration;

use crate::cell::DecodeError;
use crate::engine::EngineError;

/// Why a pool could not join a fleet. The pool is left suspended, except after `Setting` and
/// `SharedSessions`.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// A setting is out of its range.
    Setting {
        /// Its name.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The pool is behind a transaction pooler, and the engine is its server.
    SharedSessions,
    /// The engine failed or did not answer. Try again.
    Engine(EngineError),
    /// The cell cannot be read by this program.
    Cell(DecodeError),
}

impl JoinError {
    pub(crate) fn of_round(error: RoundError) -> Self {
        match error {
            RoundError::Engine(error) => Self::Engine(error),
            RoundError::Cell(error) => Self::Cell(error),
            late @ (RoundError::TimedOut(_) | RoundError::Lost) => {
                Self::Engine(late.to_string().into())
            }
        }
    }

    /// Returns whether another try may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Engine(_))
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting {
                field,
                value,
                allowed,
            } => write!(f, "`{field}` is {value}, and must be {allowed}"),
            Self::SharedSessions => f.write_str(
                "the pool is behind a transaction pooler, where its sessions cannot be counted: \
                 keep the fleet in Redis or NATS, or use the limit of the pooler itself",
            ),
            Self::Engine(error) => {
                f.write_str("the engine of the fleet failed: ")?;
                write_chain(f, &**error)
            }
            Self::Cell(error) => error.fmt(f),
        }
    }
}

/// The text has all causes, so there is no source below it.
impl Error for JoinError {}

/// Why a round has failed.
#[derive(Debug)]
pub(crate) enum RoundError {
    Engine(EngineError),
    TimedOut(Duration),
    Cell(DecodeError),
    /// Other members were faster, several times.
    Lost,
}

impl fmt::Display for RoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => {
                f.write_str("the engine failed: ")?;
                write_chain(f, &**error)
            }
            Self::TimedOut(limit) => write!(f, "the engine did not answer within {limit:?}"),
            Self::Cell(error) => error.fmt(f),
            Self::Lost => f.write_str("other members have swapped first, several times"),
        }
    }
}

/// Writes an error and its causes in one line. A cause that the text has already is left out.
fn write_chain(f: &mut fmt::Formatter<'_>, error: &dyn Error) -> fmt::Result {
    let mut said = error.to_string();
    for cause in successors(error.source(), |&cause| cause.source()) {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    f.write_str(&said.replace('\n', " "))
}
