//! The instrumentation that each pooled connection has. It notes what a user leaves behind, and
//! passes all events on.

use std::mem;

use diesel::connection::{Instrumentation, InstrumentationEvent};
use diesel::result::{DatabaseErrorKind, Error};

use crate::mark::Mark;

pub(crate) struct Watch {
    /// The instrumentation of the user.
    next: Option<Box<dyn Instrumentation>>,
    seen: Seen,
    /// The next statement is one of the transaction manager, whose state tells more than its text.
    by_manager: bool,
}

/// What was noted since the connection was clean.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Statements that have begun and not ended. Not zero after a future was dropped.
    pub(crate) running: usize,
    pub(crate) mark: Mark,
    /// After an error that can mean that the connection is lost.
    pub(crate) in_doubt: bool,
}

impl Watch {
    pub(crate) fn new(next: Option<Box<dyn Instrumentation>>) -> Self {
        Self {
            next,
            seen: Seen::default(),
            by_manager: false,
        }
    }

    /// Returns what was noted, or `None` if the user has replaced the instrumentation.
    pub(crate) fn seen(instrumentation: &mut dyn Instrumentation) -> Option<Seen> {
        Some(instrumentation.downcast_ref::<Self>()?.seen)
    }

    /// Records that the connection is as good as new.
    pub(crate) fn cleaned(instrumentation: &mut dyn Instrumentation) {
        if let Some(watch) = instrumentation.downcast_mut::<Self>() {
            watch.seen = Seen::default();
            watch.by_manager = false;
        }
    }
}

impl Instrumentation for Watch {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match &event {
            InstrumentationEvent::StartQuery { query, .. } => {
                self.seen.running += 1;
                if !mem::take(&mut self.by_manager) && self.seen.mark < Mark::Session {
                    self.seen.mark = self.seen.mark.max(Mark::of_query(*query));
                }
            }
            InstrumentationEvent::FinishQuery { error, .. } => {
                self.seen.running = self.seen.running.saturating_sub(1);
                self.seen.in_doubt |= error.is_some_and(leaves_doubt);
            }
            InstrumentationEvent::BeginTransaction { .. }
            | InstrumentationEvent::CommitTransaction { .. }
            | InstrumentationEvent::RollbackTransaction { .. } => self.by_manager = true,
            _ => {}
        }
        if let Some(next) = &mut self.next {
            next.on_connection_event(event);
        }
    }
}

/// The drivers tell a lost connection from a wrong statement by the text only.
fn leaves_doubt(error: &Error) -> bool {
    use DatabaseErrorKind as Kind;
    matches!(
        error,
        Error::DatabaseError(
            Kind::Unknown | Kind::UnableToSendCommand | Kind::ClosedConnection,
            _
        )
    )
}
