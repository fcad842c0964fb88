//! Orders: what the shell must do once the ledger's lock is released.

use std::task::Waker;

use super::Resource;
use super::circle::Circle;
use super::mailbox::Mail;
use crate::error::OpenError;
use crate::time::Moment;

/// What must be done now, without the lock. Dropping it unread loses wake-ups.
///
/// Three words: most calls have one order at most, a wake-up. With all orders side by side, making,
/// reading and dropping them took a twentieth of the instructions of a hand-over.
#[derive(Debug)]
#[must_use = "a waiter may have to be woken"]
pub(crate) struct Orders<R: Resource> {
    /// The first waker. A hand-over has no other order, and so needs no memory.
    waker: Option<Waker>,
    pub(super) rest: Option<Box<Rest<R>>>,
}

/// Orders that most calls do not have.
#[derive(Debug)]
pub(crate) struct Rest<R: Resource> {
    pub(crate) many: Vec<Many<R>>,
    /// A circle was found: raise the event.
    pub(crate) circle: Option<Circle>,
    /// There is owed work: do it, or ask a helper to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// Set the alarm for this moment.
    pub(crate) alarm: Option<Moment>,
}

/// A value whose waking or dropping is user code.
#[derive(Debug)]
#[expect(dead_code, reason = "some are here only to be dropped")]
pub(crate) enum Many<R: Resource> {
    Wake(Waker),
    /// A waker that is not needed any more.
    Spent(Waker),
    /// The mail of a waiter that is gone.
    Unread(Mail<R>),
    Error(OpenError<R::Error>),
}

impl<R: Resource> Default for Orders<R> {
    #[inline]
    fn default() -> Self {
        Self {
            waker: None,
            rest: None,
        }
    }
}

impl<R: Resource> Orders<R> {
    #[inline]
    pub(super) fn wake(&mut self, waker: Waker) {
        if self.waker.is_none() {
            self.waker = Some(waker);
        } else {
            self.rest().many.push(Many::Wake(waker));
        }
    }

    /// Wakes the waiter, unless it was woken before and has not polled since.
    #[inline]
    pub(super) fn wake_waiter(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wake(waker);
        }
    }

    /// Drops a value of users without the lock.
    pub(super) fn drop_later(&mut self, value: Option<Many<R>>) {
        if let Some(value) = value {
            self.rest().many.push(value);
        }
    }

    /// Says whether there is owed work.
    #[inline]
    pub(super) fn set_owed(&mut self, owed: bool) {
        if owed || self.rest.is_some() {
            self.rest().owed = owed;
        }
    }

    /// The other orders, to add one.
    #[cold]
    pub(super) fn rest(&mut self) -> &mut Rest<R> {
        self.rest.get_or_insert_with(|| {
            Box::new(Rest {
                many: Vec::new(),
                circle: None,
                owed: false,
                ring: false,
                alarm: None,
            })
        })
    }

    /// Returns whether a waiter is to be woken.
    #[inline]
    pub(crate) fn wakes(&self) -> bool {
        self.waker.is_some()
    }

    #[cfg(all(test, not(cenote_model)))]
    pub(super) fn first_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    /// The first waker, and all other orders.
    #[inline]
    pub(crate) fn split(self) -> (Option<Waker>, Option<Box<Rest<R>>>) {
        (self.waker, self.rest)
    }
}
