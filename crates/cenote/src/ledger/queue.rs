//! The line of waiters: first come, first served, and leaving from the middle costs nothing.

use std::mem;
use std::task::Waker;

use super::slot::{Asker, SlotNo};
use crate::moment::Moment;

/// A place in the line. Given out by `join`, ends with `leave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    seat: SeatNo,
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
    /// They have heard, and left. The seat is free.
    Gone,
}

#[derive(Debug)]
pub(crate) struct Waiter<F> {
    pub(crate) asker: Asker,
    pub(crate) since: Moment,
    /// When the alarm must wake them. Not at all if they wake by themselves, or were woken.
    pub(crate) look_at: Option<Moment>,
    pub(crate) fate: Fate<F>,
    /// Present until they are woken for good.
    pub(crate) waker: Option<Waker>,
    serial: u64,
    ahead: Option<SeatNo>,
    behind: Option<SeatNo>,
}

/// Small, for there are two of them in each seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeatNo(u32);

impl SeatNo {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A linked list through a vector of seats. Those whose fate is decided keep their seat until they have heard of it.
#[derive(Debug)]
pub(crate) struct Queue<F> {
    seats: Vec<Waiter<F>>,
    free: Vec<SeatNo>,
    first: Option<SeatNo>,
    last: Option<SeatNo>,
    len: usize,
    serial: u64,
}

impl<F> Waiter<F> {
    #[inline]
    pub(crate) fn is_in_line(&self) -> bool {
        matches!(self.fate, Fate::Waiting)
    }

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

    pub(crate) fn join(
        &mut self,
        asker: Asker,
        waker: Waker,
        look_at: Option<Moment>,
        now: Moment,
    ) -> Ticket {
        self.serial += 1;
        let serial = self.serial;
        let seat = match self.free.pop() {
            Some(seat) => {
                // Field by field: what is built first and then moved costs more than all the rest.
                let waiter = &mut self.seats[seat.index()];
                waiter.asker = asker;
                waiter.since = now;
                waiter.look_at = look_at;
                waiter.fate = Fate::Waiting;
                waiter.waker = Some(waker);
                waiter.serial = serial;
                waiter.ahead = self.last;
                waiter.behind = None;
                seat
            }
            None => {
                let count = self.seats.len();
                if count == self.seats.capacity() {
                    // A pool that was busy once keeps them all.
                    self.seats.reserve_exact((count / 2).max(1));
                }
                self.seats.push(Waiter {
                    asker,
                    since: now,
                    look_at,
                    fate: Fate::Waiting,
                    waker: Some(waker),
                    serial,
                    ahead: self.last,
                    behind: None,
                });
                SeatNo(u32::try_from(count).expect("fewer than four billion wait"))
            }
        };
        match self.last {
            Some(last) => self.seats[last.index()].behind = Some(seat),
            None => self.first = Some(seat),
        }
        self.last = Some(seat);
        self.len += 1;
        Ticket { seat, serial }
    }

    /// The first in line.
    pub(crate) fn first(&self) -> Option<&Waiter<F>> {
        self.first.map(|seat| &self.seats[seat.index()])
    }

    /// Decides the fate of the first in line, who then is in line no more. The caller wakes them.
    pub(crate) fn settle_first(&mut self, fate: Fate<F>) -> Option<&mut Waiter<F>> {
        let seat = self.first?;
        self.unlink(seat);
        let waiter = &mut self.seats[seat.index()];
        waiter.fate = fate;
        Some(waiter)
    }

    /// The waiter with this ticket, in line or decided.
    pub(crate) fn waiter(&mut self, ticket: Ticket) -> &mut Waiter<F> {
        let waiter = &mut self.seats[ticket.seat.index()];
        assert!(
            waiter.serial == ticket.serial,
            "bug: a ticket was used after it ended"
        );
        waiter
    }

    /// Ends a ticket: what became of its waiter, since when it waited, and its waker if it was never woken for good.
    #[inline]
    pub(crate) fn leave(&mut self, ticket: Ticket) -> (Fate<F>, Moment, Option<Waker>) {
        if self.waiter(ticket).is_in_line() {
            self.unlink(ticket.seat);
        }
        self.free.push(ticket.seat);
        let waiter = &mut self.seats[ticket.seat.index()];
        // A ticket ends once.
        waiter.serial = 0;
        let fate = mem::replace(&mut waiter.fate, Fate::Gone);
        (fate, waiter.since, waiter.waker.take())
    }

    /// Everybody who is in line, first to last.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Waiter<F>> {
        std::iter::successors(self.first(), |waiter| {
            waiter.behind.map(|seat| &self.seats[seat.index()])
        })
    }

    /// The number of whoever came last, in line or not.
    pub(crate) fn last_serial(&self) -> u64 {
        self.serial
    }

    /// Everybody in line who came after the one of this number, last to first.
    pub(crate) fn newcomers(&self, serial: u64) -> impl Iterator<Item = &Waiter<F>> {
        let seat = |seat: SeatNo| &self.seats[seat.index()];
        std::iter::successors(self.last.map(seat), move |waiter| waiter.ahead.map(seat))
            .take_while(move |waiter| waiter.serial > serial)
    }

    /// Everybody in line, and each may be changed.
    pub(crate) fn each_in_line(&mut self, mut change: impl FnMut(&mut Waiter<F>)) {
        let mut next = self.first;
        while let Some(seat) = next {
            let waiter = &mut self.seats[seat.index()];
            next = waiter.behind;
            change(waiter);
        }
    }

    /// Everybody whose fate is decided and who has not heard of it.
    pub(crate) fn decided(&mut self) -> impl Iterator<Item = &mut Waiter<F>> {
        self.seats
            .iter_mut()
            .filter(|waiter| !matches!(waiter.fate, Fate::Waiting | Fate::Gone))
    }

    fn unlink(&mut self, seat: SeatNo) {
        let Waiter { ahead, behind, .. } = self.seats[seat.index()];
        match ahead {
            Some(ahead) => self.seats[ahead.index()].behind = behind,
            None => self.first = behind,
        }
        match behind {
            Some(behind) => self.seats[behind.index()].ahead = ahead,
            None => self.last = ahead,
        }
        self.len -= 1;
    }
}
