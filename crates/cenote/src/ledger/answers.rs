//! Answers: what one who asks the ledger for a resource may hear.

use std::panic::Location;
use std::time::Duration;

use super::mailbox::MailboxRef;
use super::slot::SlotNo;
use super::{Report, Ticket};

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer<R: 'static, F> {
    /// Served at once.
    Granted(Grant<R>),
    /// In line. What is granted comes to the mailbox.
    Wait {
        ticket: Ticket,
        mailbox: MailboxRef<R>,
    },
    /// Not even in line.
    Refused(Refusal<F>),
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
    Rejected {
        waiting: usize,
    },
    Nested {
        held: &'static Location<'static>,
    },
}

/// What a claim comes to, once it comes to something.
pub(crate) type Claim<R, F> = Result<Grant<R>, Refusal<F>>;

/// What a waiter hears whose time is over: the claim that it had after all, or what was seen.
pub(crate) type LastWord<R, F> = Result<Claim<R, F>, Box<Report<F>>>;
