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
    /// In a box, so that the orders of a hand-over are made and dropped quickly.
    rare: Option<Box<Rare<R>>>,
    /// There is owed work: do it, or ask a helper to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// Set the alarm for this moment.
    pub(crate) alarm: Option<Moment>,
}

/// Orders that most calls do not have.
#[derive(Debug)]
struct Rare<R: Resource> {
    many: Vec<Many<R>>,
    /// A circle was found: raise the event.
    circle: Option<Circle>,
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
            rare: None,
            owed: false,
            ring: false,
            alarm: None,
        }
    }
}

impl<R: Resource> Orders<R> {
    #[inline]
    pub(super) fn wake(&mut self, waker: Waker) {
        if self.first.is_none() {
            self.first = Some(waker);
        } else {
            self.rare().many.push(Many::Wake(waker));
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
            self.rare().many.push(Many::Spent(waker));
        }
    }

    /// Drops an error without the lock.
    pub(super) fn drop_later(&mut self, error: Option<OpenError<R::Error>>) {
        if let Some(error) = error {
            self.rare().many.push(Many::Error(error));
        }
    }

    /// Drops the error of a waiter that is gone.
    pub(super) fn discard(&mut self, error: BoxedError<R>) {
        self.rare().many.push(Many::Unread(error));
    }

    /// Raises the event of a circle.
    pub(super) fn tell_of_circle(&mut self, circle: Circle) {
        self.rare().circle = Some(circle);
    }

    #[cold]
    fn rare(&mut self) -> &mut Rare<R> {
        self.rare.get_or_insert_with(|| {
            Box::new(Rare {
                many: Vec::new(),
                circle: None,
            })
        })
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

    /// Returns whether there may be other wakers, or values to be dropped.
    #[inline]
    pub(crate) fn has_many(&self) -> bool {
        self.rare.is_some()
    }

    pub(crate) fn take_many(&mut self) -> Vec<Many<R>> {
        let rare = self.rare.as_mut();
        rare.map_or_else(Vec::new, |rare| mem::take(&mut rare.many))
    }

    /// The circle that was found, if one was.
    pub(crate) fn take_circle(&mut self) -> Option<Circle> {
        self.rare.as_mut()?.circle.take()
    }

    /// Returns whether there is something to do besides waking.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.owed || self.ring || self.alarm.is_some() || self.rare.is_some()
    }
}
