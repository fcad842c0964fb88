//! Answers: what the ledger says to a caller that asks for a resource.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::mailbox::MailboxRef;
use super::slot::SlotNo;
use super::{Report, Resource, Ticket};
use crate::error::Phase;
use crate::moment::Moment;

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer<R: Resource> {
    /// Served at once.
    Granted(Grant<R>),
    /// Queued. The outcome will be in the mailbox.
    Wait {
        ticket: Ticket,
        mailbox: MailboxRef<R>,
    },
    /// Not even queued.
    Refused(Refusal<R::Failure>),
}

/// A resource, and what its lease should know.
#[derive(Debug)]
pub(crate) struct Grant<R> {
    pub(crate) slot: SlotNo,
    pub(crate) resource: R,
    pub(crate) uses: u64,
    /// It comes straight from its open, so nothing can be wrong with it yet.
    pub(crate) fresh: bool,
}

/// Why there will be no lease.
#[derive(Debug)]
pub(crate) enum Refusal<F> {
    Closed,
    Unavailable(Box<Unavailable<F>>),
    Open(F),
    TimedOut(TimeIsUp<F>),
    Rejected { waiting: usize },
    Nested { held: &'static Location<'static> },
}

/// The breaker is inactive. In a box, so that a mailbox stays small.
#[derive(Debug)]
pub(crate) struct Unavailable<F> {
    /// For how long it has been inactive.
    pub(crate) since: Duration,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) cause: Option<F>,
}

/// A waiter's deadline has passed.
#[derive(Debug)]
pub(crate) struct TimeIsUp<F> {
    /// When it began to wait.
    pub(crate) since: Moment,
    /// What it was waiting for at the end.
    pub(crate) phase: Phase,
    /// Shared by all waiters that time out in one round of the alarm.
    pub(crate) seen: Arc<Report<F>>,
}

impl<F> TimeIsUp<F> {
    pub(crate) fn waited(&self) -> Duration {
        self.seen.at.saturating_duration_since(self.since)
    }
}
