//! The mailbox: where one who waits finds what it was given, or that its time is over, without asking the ledger again.
//!
//! The ledger decides who is given what, and whoever asked it delivers that once the book's lock is released, so that nobody waits for the
//! post. A grant is claimed by whoever takes it out: its waiter, without the book, or the ledger, which has something else in mind by now.
//! One who leaves before it comes refuses it. No other lock is taken under that of a mailbox.

use std::fmt;
use std::task::Waker;

use super::Resource;
use super::answers::{Grant, TimeIsUp};
use crate::kept::Kept;
use crate::sync::Latch;

pub(crate) type MailboxRef<R> = Kept<Mailbox<R>>;

/// On a cache line of its own.
#[repr(align(64))]
pub(crate) struct Mailbox<R: Resource>(Latch<Inside<R>>);

/// What one who waits may find there.
#[derive(Debug)]
pub(crate) enum Mail<R: Resource> {
    Grant(Grant<R>),
    TimeIsUp(TimeIsUp<R::Failure>),
}

struct Inside<R: Resource> {
    mail: Option<Mail<R>>,
    /// Of one who looked while it was on its way.
    waker: Option<Waker>,
    /// The last digits of the ticket by which something was claimed last.
    claimed: u32,
    /// It is not wanted any more.
    refused: bool,
}

/// What comes of a delivery.
#[derive(Debug)]
#[must_use]
pub(crate) struct Delivery<R> {
    /// Here it is again, if it was refused.
    pub(crate) refused: Option<Grant<R>>,
    /// Must be woken, too.
    pub(crate) waker: Option<Waker>,
}

impl<R: Resource> Default for Mailbox<R> {
    fn default() -> Self {
        Self(Latch::new(Inside {
            mail: None,
            waker: None,
            claimed: 0,
            refused: false,
        }))
    }
}

impl<R: Resource> Mailbox<R> {
    #[inline]
    pub(crate) fn put(&self, grant: Grant<R>) -> Delivery<R> {
        let mut inside = self.0.lock();
        let waker = inside.waker.take();
        if inside.refused {
            inside.refused = false;
            let refused = Some(grant);
            return Delivery { refused, waker };
        }
        inside.mail = Some(Mail::Grant(grant));
        let refused = None;
        Delivery { refused, waker }
    }

    /// Nothing else is here, or on its way.
    pub(super) fn tell(&self, over: TimeIsUp<R::Failure>) {
        self.0.lock().mail = Some(Mail::TimeIsUp(over));
    }

    /// Claims what is here, by the ticket of this number.
    #[inline]
    pub(crate) fn claim(&self, serial: u64) -> Option<Mail<R>> {
        self.0.lock().claim(serial)
    }

    /// The same for one who knows that there will be something. If that is still on its way, `waker` is woken when it comes. Answers with
    /// the waker that was there before, too.
    pub(super) fn claim_or_wait(
        &self,
        serial: u64,
        waker: &Waker,
    ) -> (Option<Mail<R>>, Option<Waker>) {
        let waker = waker.clone();
        let mut inside = self.0.lock();
        match inside.claim(serial) {
            None => (None, inside.waker.replace(waker)),
            mail => (mail, Some(waker)),
        }
    }

    /// Takes back what is here, or refuses what is on its way to the ticket of this number. One who has claimed it keeps it.
    pub(super) fn refuse(&self, serial: u64) -> Option<Grant<R>> {
        let mut inside = self.0.lock();
        let grant = inside.take_grant();
        inside.refused = grant.is_none() && inside.claimed != digits(serial);
        grant
    }

    /// As good as new, for other numbers. Here is what was in it.
    pub(super) fn empty(&self) -> Option<Mail<R>> {
        let mut inside = self.0.lock();
        inside.claimed = 0;
        inside.refused = false;
        let left = (inside.mail.take(), inside.waker.take());
        drop(inside);
        left.0
    }

    /// Was something claimed by the ticket of this number?
    pub(super) fn was_claimed(&self, serial: u64) -> bool {
        self.0.lock().claimed == digits(serial)
    }

    /// Is something here that was granted?
    pub(super) fn has_grant(&self) -> bool {
        matches!(self.0.lock().mail, Some(Mail::Grant(_)))
    }
}

impl<R: Resource> Inside<R> {
    #[inline]
    fn claim(&mut self, serial: u64) -> Option<Mail<R>> {
        let mail = self.mail.take()?;
        self.claimed = digits(serial);
        Some(mail)
    }

    fn take_grant(&mut self) -> Option<Grant<R>> {
        match self.mail.take()? {
            Mail::Grant(grant) => Some(grant),
            over @ Mail::TimeIsUp(_) => {
                self.mail = Some(over);
                None
            }
        }
    }
}

/// Never those of nobody.
#[inline]
fn digits(serial: u64) -> u32 {
    serial as u32 | 1 << 31
}

impl<R: Resource> fmt::Debug for Mailbox<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("has_grant", &self.has_grant())
            .finish()
    }
}
