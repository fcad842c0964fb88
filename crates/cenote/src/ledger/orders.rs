//! Orders: what the shell must do once the ledger's lock is released.

use std::mem;
use std::task::Waker;

use super::Resource;
use super::circle::Circle;
use super::mailbox::BoxedError;
use crate::error::OpenError;
use crate::time::Moment;

/// What must be done now, without the lock. Dropping it unread loses wake-ups.
#[derive(Debug)]
#[must_use = "a waiter may have to be woken"]
pub(crate) struct Orders<R: Resource> {
    /// The first waker. A hand-over has no other, and so needs no memory.
    first: Option<Waker>,
    many: Vec<Many<R>>,
    /// There is owed work: do it, or ask a helper to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// Set the alarm for this moment.
    pub(crate) alarm: Option<Moment>,
    /// A circle was found: raise the event.
    pub(crate) circle: Option<Box<Circle>>,
}

/// A value whose waking or dropping is user code.
#[derive(Debug)]
#[expect(dead_code, reason = "some are here only to be dropped")]
pub(crate) enum Many<R: Resource> {
    Wake(Waker),
    /// A waker that is not needed any more.
    Spent(Waker),
    /// The error of a waiter that is gone.
    Unread(BoxedError<R>),
    Error(OpenError<R::Error>),
}

impl<R: Resource> Default for Orders<R> {
    #[inline]
    fn default() -> Self {
        Self {
            first: None,
            many: Vec::new(),
            owed: false,
            ring: false,
            alarm: None,
            circle: None,
        }
    }
}

impl<R: Resource> Orders<R> {
    #[inline]
    pub(super) fn wake(&mut self, waker: Waker) {
        if self.first.is_none() {
            self.first = Some(waker);
        } else {
            self.many.push(Many::Wake(waker));
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
        self.many.extend(waker.map(Many::Spent));
    }

    /// Drops an error without the lock.
    pub(super) fn drop_later(&mut self, error: Option<OpenError<R::Error>>) {
        self.many.extend(error.map(Many::Error));
    }

    /// Drops the error of a waiter that is gone.
    pub(super) fn discard(&mut self, error: BoxedError<R>) {
        self.many.push(Many::Unread(error));
    }

    /// Returns whether a waiter is to be woken.
    #[inline]
    pub(crate) fn wakes(&self) -> bool {
        self.first.is_some()
    }

    #[inline]
    pub(crate) fn first_waker(&mut self) -> Option<Waker> {
        self.first.take()
    }

    /// Returns whether there are other wakers, or values to be dropped.
    #[inline]
    pub(crate) fn has_many(&self) -> bool {
        !self.many.is_empty()
    }

    pub(crate) fn take_many(&mut self) -> Vec<Many<R>> {
        mem::take(&mut self.many)
    }

    /// Returns whether there is something to do besides waking.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.owed || self.ring || self.alarm.is_some() || self.circle.is_some()
    }
}
