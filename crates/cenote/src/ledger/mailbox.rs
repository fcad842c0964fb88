//! A waiter's mailbox: the one place where the outcome of a wait is delivered.
//!
//! The ledger delivers under its own lock, in the same step as the decision. So a waiter is in one of two states at any time: in the queue
//! with the waker of its last poll, or out of the queue with mail. No code of users runs between the two.
//!
//! # Race
//! The waiter takes its mail without the ledger's lock, so that a contended acquire takes that lock once and not twice. The mailbox's own
//! lock decides between the waiter and the ledger, which may want a grant back (the pool closes, the breaker trips, the deadline passes, the
//! waiter is dropped):
//! - The waiter comes first: the mailbox is empty, [`Mailbox::revoke`] returns `None`, and the resource is leased.
//! - The ledger comes first: it swaps the grant for a refusal in one step. The waiter finds the refusal.
//!
//! Either way a waiter that is out of the queue finds something, whichever waker polls it, and never has to wait again. A wake-up cannot be
//! lost: the delivery takes the waiter's waker out of the queue and wakes it once the ledger's lock is released. If that waker was taken
//! before (the alarm asked for a look), the wake-up is already on its way.

use std::fmt;
use std::sync::Arc;

use super::Resource;
use super::answers::{Grant, Refusal};
use crate::sync::SpinLock;

/// Shared by the waiter and the ledger.
pub(crate) type MailboxRef<R> = Arc<Mailbox<R>>;

pub(crate) struct Mailbox<R: Resource>(SpinLock<Option<Mail<R>>>);

/// The outcome of a wait.
pub(crate) type Mail<R> = Result<Grant<R>, Refusal<<R as Resource>::Failure>>;

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

    /// Takes the mail out. This claims a grant.
    #[inline]
    pub(crate) fn take(&self) -> Option<Mail<R>> {
        self.0.lock().take()
    }

    /// Swaps an unclaimed grant for a refusal, and returns the grant. Under the ledger's lock.
    pub(super) fn revoke(
        &self,
        refusal: Refusal<R::Failure>,
    ) -> Result<Grant<R>, Refusal<R::Failure>> {
        let mut inside = self.0.lock();
        match inside.take() {
            Some(Ok(grant)) => {
                *inside = Some(Err(refusal));
                Ok(grant)
            }
            other => {
                *inside = other;
                Err(refusal)
            }
        }
    }

    /// Returns whether a grant is here that was not claimed.
    pub(super) fn has_grant(&self) -> bool {
        matches!(*self.0.lock(), Some(Ok(_)))
    }
}

impl<R: Resource> fmt::Debug for Mailbox<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("has_grant", &self.has_grant())
            .finish()
    }
}
