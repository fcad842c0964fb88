//! Answers: what one who asks the ledger for a resource may hear.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::mailbox::MailboxRef;
use super::slot::SlotNo;
use super::{Report, Resource, Ticket};
use crate::moment::Moment;

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer<R: Resource> {
    /// Served at once.
    Granted(Grant<R>),
    /// In line. What is granted comes to the mailbox.
    Wait {
        ticket: Ticket,
        mailbox: MailboxRef<R>,
    },
    /// Not even in line.
    Refused(Refusal<R::Failure>),
}

/// A resource, and what its lease should know.
#[derive(Debug)]
pub(crate) struct Grant<R> {
    pub(crate) slot: SlotNo,
    pub(crate) resource: R,
    pub(crate) uses: u64,
}

/// Why there will be no lease.
#[derive(Debug)]
pub(crate) enum Refusal<F> {
    Closed,
    Unavailable {
        since: Duration,
        retry_after: Option<Duration>,
        cause: Option<F>,
    },
    Open(F),
    TimedOut(TimeIsUp<F>),
    Rejected {
        waiting: usize,
    },
    Nested {
        held: &'static Location<'static>,
    },
}

/// What a claim comes to, once it comes to something.
pub(crate) type Claim<R> = Result<Grant<R>, Refusal<<R as Resource>::Failure>>;

/// What one hears who ran out of time.
#[derive(Debug)]
pub(crate) struct TimeIsUp<F> {
    /// When it began to wait.
    pub(crate) since: Moment,
    /// Shared by all who ran out of time at once.
    pub(crate) seen: Arc<Report<F>>,
}

impl<F> TimeIsUp<F> {
    pub(crate) fn waited(&self) -> Duration {
        self.seen.at.saturating_duration_since(self.since)
    }
}
