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

    /// Drops a waker without the lock.
    pub(super) fn spend(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.rest().many.push(Many::Spent(waker));
        }
    }

    /// Drops an error without the lock.
    pub(super) fn drop_later(&mut self, error: Option<OpenError<R::Error>>) {
        if let Some(error) = error {
            self.rest().many.push(Many::Error(error));
        }
    }

    /// Drops the mail of a waiter that is gone.
    pub(super) fn discard(&mut self, mail: Mail<R>) {
        self.rest().many.push(Many::Unread(mail));
    }

    /// Raises the event of a circle.
    pub(super) fn tell_of_circle(&mut self, circle: Circle) {
        self.rest().circle = Some(circle);
    }

    /// Sets the alarm.
    pub(super) fn set_alarm(&mut self, at: Moment) {
        self.rest().alarm = Some(at);
    }

    /// Wakes the upkeep task.
    pub(super) fn ring(&mut self) {
        self.rest().ring = true;
    }

    /// The upkeep task is awake.
    pub(super) fn do_not_ring(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest.ring = false;
        }
    }

    /// Says whether there is owed work.
    #[inline]
    pub(super) fn set_owed(&mut self, owed: bool) {
        if owed || self.rest.is_some() {
            self.rest().owed = owed;
        }
    }

    #[cold]
    fn rest(&mut self) -> &mut Rest<R> {
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
