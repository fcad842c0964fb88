//! The line of waiters: first come, first served, and leaving from the middle costs nothing.

use std::task::Waker;
use std::time::Instant;

use super::slot::{Asker, SlotNo};

/// A place in the line. Given out by `join`, ends with `leave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    seat: usize,
    serial: u64,
}

/// What became of a waiter.
#[derive(Debug)]
pub(crate) enum Fate<F> {
    /// In line.
    Waiting,
    /// The resource in this slot is theirs. Out of line.
    Granted(SlotNo),
    /// An open failed, and they were first. Out of line.
    Failed(F),
    /// The breaker became inactive. Out of line.
    Unavailable,
    /// The pool was closed. Out of line.
    Closed,
}

#[derive(Debug)]
pub(crate) struct Waiter<F> {
    pub(crate) asker: Asker,
    pub(crate) since: Instant,
    pub(crate) fate: Fate<F>,
    pub(crate) waker: Waker,
    serial: u64,
    ahead: Option<usize>,
    behind: Option<usize>,
}

/// A linked list through a vector of seats. Those whose fate is decided keep their seat until they have heard of it.
#[derive(Debug)]
pub(crate) struct Queue<F> {
    seats: Vec<Option<Waiter<F>>>,
    free: Vec<usize>,
    first: Option<usize>,
    last: Option<usize>,
    len: usize,
    serial: u64,
}

impl<F> Waiter<F> {
    /// Its number: who came later has a larger one.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

impl<F> Queue<F> {
    pub(crate) const fn new() -> Self {
        Self {
            seats: Vec::new(),
            free: Vec::new(),
            first: None,
            last: None,
            len: 0,
            serial: 0,
        }
    }

    /// How many are in line.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn join(&mut self, asker: Asker, waker: Waker, now: Instant) -> Ticket {
        let seat = self.free.pop().unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        self.serial += 1;
        let serial = self.serial;
        self.seats[seat] = Some(Waiter {
            asker,
            since: now,
            fate: Fate::Waiting,
            waker,
            serial,
            ahead: self.last,
            behind: None,
        });
        match self.last {
            Some(last) => self.at(last).behind = Some(seat),
            None => self.first = Some(seat),
        }
        self.last = Some(seat);
        self.len += 1;
        Ticket { seat, serial }
    }

    /// The first in line.
    pub(crate) fn first(&self) -> Option<&Waiter<F>> {
        self.first.and_then(|seat| self.seats[seat].as_ref())
    }

    /// Decides the fate of the first in line, who then is in line no more. The caller wakes them.
    pub(crate) fn settle_first(&mut self, fate: Fate<F>) -> Option<&mut Waiter<F>> {
        let seat = self.first?;
        self.unlink(seat);
        let waiter = self.at(seat);
        waiter.fate = fate;
        Some(waiter)
    }

    /// The waiter with this ticket, in line or decided.
    pub(crate) fn waiter(&mut self, ticket: Ticket) -> &mut Waiter<F> {
        let waiter = self.at(ticket.seat);
        assert_eq!(
            waiter.serial, ticket.serial,
            "bug: a ticket was used after it ended"
        );
        waiter
    }

    /// Ends a ticket, and gives back what was known of its waiter.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Waiter<F> {
        if matches!(self.waiter(ticket).fate, Fate::Waiting) {
            self.unlink(ticket.seat);
        }
        self.free.push(ticket.seat);
        self.seats[ticket.seat]
            .take()
            .expect("bug: the seat was just looked at")
    }

    /// Everybody who is in line, first to last.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Waiter<F>> {
        std::iter::successors(self.first(), |waiter| {
            waiter.behind.and_then(|seat| self.seats[seat].as_ref())
        })
    }

    /// Everybody whose fate is decided and who has not heard of it.
    pub(crate) fn decided(&mut self) -> impl Iterator<Item = &mut Waiter<F>> {
        self.seats
            .iter_mut()
            .flatten()
            .filter(|waiter| !matches!(waiter.fate, Fate::Waiting))
    }

    fn unlink(&mut self, seat: usize) {
        let Waiter { ahead, behind, .. } = *self.at(seat);
        match ahead {
            Some(ahead) => self.at(ahead).behind = behind,
            None => self.first = behind,
        }
        match behind {
            Some(behind) => self.at(behind).ahead = ahead,
            None => self.last = ahead,
        }
        self.len -= 1;
    }

    fn at(&mut self, seat: usize) -> &mut Waiter<F> {
        self.seats[seat].as_mut().expect("bug: the seat is taken")
    }
}
