//! A seat in line, and whoever sits there.

use std::num::NonZeroU32;
use std::task::Waker;

use super::mailbox::MailboxRef;
use super::slot::Asker;
use super::{HELD_UP_AFTER, Resource};
use crate::moment::Moment;

/// What became of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// In line.
    Waiting,
    /// A grant is in their mailbox, or was. Out of line.
    Granted,
    /// An open failed, and they were first. Out of line.
    Failed,
    /// Their time is over. That is in their mailbox, or was. Out of line.
    TimedOut,
    /// The breaker became inactive. Out of line.
    Unavailable,
    /// The pool was closed. Out of line.
    Closed,
    /// They have heard, and left. The seat is free.
    Gone,
}

/// In this order: whoever serves them, often on another core, touches the first cache line only.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Waiter<R: Resource> {
    /// Present until they are woken for good.
    pub(crate) waker: Option<Waker>,
    pub(crate) asker: Asker,
    pub(crate) mailbox: MailboxRef<R>,
    /// The next in line; or the next free seat.
    pub(super) behind: Option<SeatNo>,
    /// The one before. Means nothing for the first in line.
    pub(super) ahead: Option<SeatNo>,
    pub(crate) fate: Fate,

    pub(crate) since: Moment,
    /// When the alarm must wake them. Not at all if they wake by themselves, or were woken.
    pub(crate) look_at: Option<Moment>,
    /// When their time is over.
    pub(crate) until: Moment,
    pub(super) serial: u64,
    /// Present if that is their fate.
    pub(crate) failure: Option<R::Failure>,
}

impl<R: Resource> Waiter<R> {
    #[inline]
    pub(crate) fn is_in_line(&self) -> bool {
        self.fate == Fate::Waiting
    }

    /// Is woken by the alarm when its time is over, and before that from time to time. Not at all if it wakes by itself.
    #[inline]
    pub(crate) fn look_again(&mut self, until: Option<Moment>, now: Moment) {
        self.look_at = next_look(until, now);
        self.until = until.unwrap_or(Moment::NEVER);
    }

    /// Nobody sits there yet.
    pub(super) fn nobody(mailbox: MailboxRef<R>, asker: Asker, now: Moment) -> Self {
        Self {
            waker: None,
            asker,
            mailbox,
            behind: None,
            ahead: None,
            fate: Fate::Gone,
            since: now,
            look_at: None,
            until: now,
            serial: 0,
            failure: None,
        }
    }

    /// Of one for whom something is in the mailbox, or was.
    pub(crate) fn has_claimed(&self) -> bool {
        self.mailbox.was_claimed(self.serial)
    }

    /// Its number: who came later has a larger one.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

/// When one whose time is over then must look again.
#[inline]
pub(super) fn next_look(until: Option<Moment>, now: Moment) -> Option<Moment> {
    until.map(|until| until.min(now + HELD_UP_AFTER))
}

/// Counted from one. Small, for there are two of them in each seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeatNo(NonZeroU32);

impl SeatNo {
    pub(super) fn of(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than four billion wait"))
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
