//! The log: lines for an operator, by the facade of the crate `tracing`. Without the feature of
//! that name there is nothing here.
//!
//! The log hears the same events as an observer, and two things that are no events: the full error
//! of an acquire that timed out, and an acquire that waits for long. No lock of ours is held while
//! a line is written, and a subscriber that panics does no harm.

#[cfg(feature = "tracing")]
mod limit;
#[cfg(feature = "tracing")]
mod lines;
#[cfg(not(feature = "tracing"))]
mod silence;
#[cfg(feature = "tracing")]
mod wait_span;

#[cfg(feature = "tracing")]
pub(crate) use self::{lines::Log, wait_span::WaitSpan};
#[cfg(not(feature = "tracing"))]
pub(crate) use silence::{Log, WaitSpan};
