//! A waiter's mailbox: the one place where the outcome of a wait is delivered.
//!
//! The ledger delivers under its own lock, in the same step as the decision. So a waiter is in one
//! of two states at any time: in the queue with the waker of its last poll, or out of the queue
//! with mail. No code of users runs between the two.
//!
//! # Race
//! The waiter takes its mail without the ledger's lock, so that a wait takes that lock once and not
//! twice. The ways in which a wait can end are a grant, an error of an open, a timeout, `close`, a
//! tripped breaker, and the drop of the waiter. The ledger decides between them under its lock, so
//! only one of them takes the waiter out of the queue and delivers. Each order of two:
//! - *Grant, then the waiter is polled*: the waiter finds the grant, whichever waker polls it.
//! - *Grant, then timeout, close or trip*: [`Mailbox::revoke`] swaps the grant for an error in one
//!   step. If the waiter was quicker, the mailbox is empty, the resource is leased, and the error
//!   is dropped. If not, the waiter finds the error, and the resource goes to the next waiter.
//! - *Grant, then drop*: the waiter is not in the queue, so [`Mailbox::take`] under the ledger's
//!   lock decides. It finds the grant, and the resource goes to the next waiter.
//! - *Timeout, close, trip or failed open, then any other*: the waiter has left the queue, so no
//!   grant can reach it. It finds the error, or drops it.
//! - *Drop, then any other*: the waiter has left the queue.
//! - A reserved place is granted and taken back in the same ways, without a resource.
//!
//! A wake-up cannot be lost. The delivery takes the waker of the last poll out of the queue, and
//! the shell wakes it once the lock is released. If that waker was taken before, because the alarm
//! asked for a look, its wake-up is already under way. A poll with another waker either finds the
//! mail, or leaves its waker in the queue under the ledger's lock, and so before the delivery.

use std::fmt;
use std::sync::Arc;

use super::Resource;
use crate::error::AcquireError;
use crate::rt::sync::SpinLock;
use crate::status::RefusalReason;
use crate::timed_out::{Phase, Report};

/// Shared by the waiter and the ledger.
pub(crate) type MailboxRef<R> = Arc<Mailbox<R>>;

pub(crate) struct Mailbox<R: Resource>(SpinLock<Option<Mail<R>>>);

/// The outcome of a wait. It fits into two registers: larger mail takes a tenth of the time of a
/// hand-over.
#[derive(Debug)]
pub(crate) enum Mail<R: Resource> {
    Grant(R),
    /// A place in the pool, for a waiter that reserves one.
    Place,
    /// The waiter knows since when it waited. The error is made when it is read, because a thousand
    /// boxes that are made at once cost a tenth of their timeouts.
    TimedOut(Phase, Arc<Report<R::Error>>),
    /// Any other error.
    Refusal(BoxedError<R>),
}

impl<R: Resource> Mail<R> {
    pub(super) fn error(error: AcquireError<R::Error>) -> Self {
        Self::Refusal(Box::new(error))
    }

    /// The reason to count, if it is a refusal.
    pub(super) fn refusal(&self) -> Option<RefusalReason> {
        match self {
            Self::Refusal(error) => error.refusal(),
            Self::Grant(_) | Self::Place | Self::TimedOut(..) => None,
        }
    }
}

pub(crate) type BoxedError<R> = Box<AcquireError<<R as Resource>::Error>>;

impl<R: Resource> Default for Mailbox<R> {
    fn default() -> Self {
        Self(SpinLock::new(None))
    }
}

impl<R: Resource> Mailbox<R> {
    /// Delivers the outcome. Under the ledger's lock.
    #[inline]
    pub(super) fn deliver(&self, mail: Mail<R>) {
        let mut inside = self.0.lock();
        debug_assert!(inside.is_none(), "bug: a wait has one outcome");
        *inside = Some(mail);
    }

    /// Claims a grant, and leaves other mail here. The mail is not moved as a whole: the processor
    /// would read it in other portions than it was written, and wait. That costs a thirtieth of a
    /// hand-over.
    #[inline]
    pub(crate) fn take_grant(&self) -> Option<R> {
        let is_grant = |mail: &mut Mail<R>| matches!(mail, Mail::Grant(_));
        match self.0.lock().take_if(is_grant) {
            Some(Mail::Grant(resource)) => Some(resource),
            _ => None,
        }
    }

    /// Takes the mail out. This claims a grant, too.
    #[inline]
    pub(crate) fn take(&self) -> Option<Mail<R>> {
        self.0.lock().take()
    }

    /// Swaps an unclaimed grant for other mail, and returns the grant. Returns the mail if there is
    /// no such grant. Under the ledger's lock.
    pub(super) fn revoke(&self, mail: Mail<R>) -> Result<R, Mail<R>> {
        let mut inside = self.0.lock();
        match inside.take() {
            Some(Mail::Grant(resource)) => {
                *inside = Some(mail);
                Ok(resource)
            }
            other => {
                *inside = other;
                Err(mail)
            }
        }
    }

    /// The same for an unclaimed place.
    pub(super) fn revoke_place(&self, mail: Mail<R>) -> Result<(), Mail<R>> {
        let mut inside = self.0.lock();
        match *inside {
            Some(Mail::Place) => {
                *inside = Some(mail);
                Ok(())
            }
            _ => Err(mail),
        }
    }

    /// Returns whether a place is here that was not claimed.
    pub(super) fn has_place(&self) -> bool {
        matches!(*self.0.lock(), Some(Mail::Place))
    }

    /// Returns whether a grant is here that was not claimed.
    pub(super) fn has_grant(&self) -> bool {
        matches!(*self.0.lock(), Some(Mail::Grant(_)))
    }
}

impl<R: Resource> fmt::Debug for Mailbox<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("has_grant", &self.has_grant())
            .finish()
    }
}
