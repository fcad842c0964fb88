//! The line of waiters: first come, first served, and leaving from the middle costs nothing.

use std::num::NonZeroU32;
use std::task::Waker;
use std::time::Duration;

use super::mailbox::MailboxRef;
use super::slot::Asker;
use crate::kept;
use crate::moment::Moment;

/// A place in the line. Given out by `join`, ends with `leave`, or with the lease that came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    seat: SeatNo,
    pub(crate) serial: u64,
}

/// What became of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// In line.
    Waiting,
    /// A grant is in their mailbox, or was. Out of line.
    Granted,
    /// An open failed, and they were first. Out of line.
    Failed,
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
pub(crate) struct Waiter<R: 'static, F> {
    /// Present until they are woken for good.
    pub(crate) waker: Option<Waker>,
    pub(crate) asker: Asker,
    pub(crate) mailbox: MailboxRef<R>,
    /// The next in line; or the next free seat.
    behind: Option<SeatNo>,
    /// The one before. Means nothing for the first in line.
    ahead: Option<SeatNo>,
    pub(crate) fate: Fate,

    pub(crate) since: Moment,
    /// When the alarm must wake them. Not at all if they wake by themselves, or were woken.
    pub(crate) look_at: Option<Moment>,
    serial: u64,
    /// Present if that is their fate.
    pub(crate) failure: Option<F>,
}

/// Counted from one. Small, for there are two of them in each seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeatNo(NonZeroU32);

impl SeatNo {
    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A linked list through a vector of seats. Those whose fate is decided keep their seat until they have heard of it; those who were granted
/// something, until they have given it back, for they claim it without a word.
#[derive(Debug)]
pub(crate) struct Queue<R: Send + 'static, F> {
    seats: Vec<Waiter<R, F>>,
    /// The seat that was left last.
    free: Option<SeatNo>,
    first: Option<SeatNo>,
    last: Option<SeatNo>,
    len: u32,
    serial: u64,
    /// Of those who are gone, in nanoseconds.
    wait_time: u64,
}

impl<R, F> Waiter<R, F> {
    #[inline]
    pub(crate) fn is_in_line(&self) -> bool {
        self.fate == Fate::Waiting
    }

    /// Of one who was granted something.
    pub(crate) fn has_claimed(&self) -> bool {
        self.mailbox.was_claimed(self.serial)
    }

    /// Its number: who came later has a larger one.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

impl<R: Send + 'static, F> Queue<R, F> {
    pub(crate) const fn new() -> Self {
        Self {
            seats: Vec::new(),
            free: None,
            first: None,
            last: None,
            len: 0,
            serial: 0,
            wait_time: 0,
        }
    }

    /// How many ever joined it.
    pub(crate) fn joined(&self) -> u64 {
        self.serial
    }

    pub(crate) fn wait_time(&self) -> Duration {
        Duration::from_nanos(self.wait_time)
    }

    /// How many are in line.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn join(
        &mut self,
        asker: Asker,
        waker: Option<Waker>,
        look_at: Option<Moment>,
        now: Moment,
    ) -> (Ticket, MailboxRef<R>) {
        self.serial += 1;
        let serial = self.serial;
        let seat = match self.free {
            Some(seat) => seat,
            None => self.add_seat(asker, now),
        };
        // Field by field: what is built first and then moved costs more than all the rest.
        let waiter = &mut self.seats[seat.index()];
        self.free = waiter.behind;
        waiter.waker = waker;
        waiter.asker = asker;
        waiter.behind = None;
        waiter.ahead = self.last;
        waiter.fate = Fate::Waiting;
        waiter.since = now;
        waiter.look_at = look_at;
        waiter.serial = serial;
        let mailbox = MailboxRef::clone(&waiter.mailbox);
        match self.last {
            Some(last) => self.seats[last.index()].behind = Some(seat),
            None => self.first = Some(seat),
        }
        self.last = Some(seat);
        self.len += 1;
        (Ticket { seat, serial }, mailbox)
    }

    /// One more seat, and nobody on it.
    #[cold]
    fn add_seat(&mut self, asker: Asker, now: Moment) -> SeatNo {
        let count = self.seats.len();
        if count == self.seats.capacity() {
            // A pool that was busy once keeps them all.
            self.seats.reserve_exact((count / 2).max(1));
        }
        self.seats.push(Waiter {
            waker: None,
            asker,
            mailbox: kept::take(),
            behind: None,
            ahead: None,
            fate: Fate::Gone,
            since: now,
            look_at: None,
            serial: 0,
            failure: None,
        });
        let number = u32::try_from(count + 1).ok().and_then(NonZeroU32::new);
        SeatNo(number.expect("fewer than four billion wait"))
    }

    /// The first in line.
    pub(crate) fn first(&self) -> Option<&Waiter<R, F>> {
        self.first.map(|seat| &self.seats[seat.index()])
    }

    /// Decides the fate of the first in line, who then is in line no more. The caller wakes them.
    #[inline]
    pub(crate) fn settle_first(&mut self, fate: Fate) -> Option<(SeatNo, &mut Waiter<R, F>)> {
        let seat = self.first?;
        self.unlink(seat);
        let waiter = &mut self.seats[seat.index()];
        waiter.fate = fate;
        Some((seat, waiter))
    }

    /// The waiter with this ticket, in line or decided.
    #[inline]
    pub(crate) fn waiter(&mut self, ticket: Ticket) -> &mut Waiter<R, F> {
        let waiter = &mut self.seats[ticket.seat.index()];
        assert!(
            waiter.serial == ticket.serial,
            "bug: a ticket was used after it ended"
        );
        waiter
    }

    /// Whoever sits there.
    pub(crate) fn at(&self, seat: SeatNo) -> &Waiter<R, F> {
        &self.seats[seat.index()]
    }

    pub(crate) fn at_mut(&mut self, seat: SeatNo) -> &mut Waiter<R, F> {
        &mut self.seats[seat.index()]
    }

    /// Ends a ticket.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Moment) {
        if self.waiter(ticket).is_in_line() {
            self.unlink(ticket.seat);
        }
        self.clear(ticket.seat, now);
    }

    /// Whoever sat there, and waited until then, has left.
    #[inline]
    pub(crate) fn clear(&mut self, seat: SeatNo, until: Moment) {
        let waiter = &mut self.seats[seat.index()];
        self.wait_time += until.nanoseconds_since(waiter.since);
        waiter.behind = self.free.replace(seat);
        waiter.fate = Fate::Gone;
        // A ticket ends once.
        waiter.serial = 0;
    }

    /// Everybody who is in line, first to last.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Waiter<R, F>> {
        std::iter::successors(self.first(), |waiter| {
            waiter.behind.map(|seat| &self.seats[seat.index()])
        })
    }

    /// The number of whoever came last, in line or not.
    pub(crate) fn last_serial(&self) -> u64 {
        self.serial
    }

    /// Everybody in line who came after the one of this number, last to first.
    pub(crate) fn newcomers(&self, serial: u64) -> impl Iterator<Item = &Waiter<R, F>> {
        let seat = |seat: SeatNo| &self.seats[seat.index()];
        std::iter::successors(self.last.map(seat), move |waiter| waiter.ahead.map(seat))
            .take(self.len())
            .take_while(move |waiter| waiter.serial > serial)
    }

    /// Everybody in line, and each may be changed.
    pub(crate) fn each_in_line(&mut self, mut change: impl FnMut(&mut Waiter<R, F>)) {
        let mut next = self.first;
        while let Some(seat) = next {
            let waiter = &mut self.seats[seat.index()];
            next = waiter.behind;
            change(waiter);
        }
    }

    /// Where those sit who were granted something, and may have claimed it or not.
    pub(crate) fn granted(&self) -> Vec<SeatNo> {
        let numbers = (1..).filter_map(NonZeroU32::new).map(SeatNo);
        self.seats
            .iter()
            .zip(numbers)
            .filter(|(waiter, _)| waiter.fate == Fate::Granted)
            .map(|(_, seat)| seat)
            .collect()
    }

    /// Whoever sits there thought until then that the wait was over.
    pub(crate) fn waits_on(&mut self, seat: SeatNo, until: Moment) {
        let waiter = &mut self.seats[seat.index()];
        self.wait_time += until.nanoseconds_since(waiter.since);
        waiter.since = until;
    }

    /// How many seats there are.
    #[cfg(test)]
    pub(crate) fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Is anything in any mailbox?
    pub(crate) fn any_mail(&self) -> bool {
        self.seats.iter().any(|waiter| waiter.mailbox.is_full())
    }

    #[inline]
    fn unlink(&mut self, seat: SeatNo) {
        let Waiter { ahead, behind, .. } = self.seats[seat.index()];
        self.len -= 1;
        if self.first == Some(seat) {
            // The new first is not told: its cache line may be far away.
            self.first = behind;
            if behind.is_none() {
                self.last = None;
            }
            return;
        }
        if let Some(ahead) = ahead {
            self.seats[ahead.index()].behind = behind;
        }
        match behind {
            Some(behind) => self.seats[behind.index()].ahead = ahead,
            None => self.last = ahead,
        }
    }
}

impl<R: Send + 'static, F> Drop for Queue<R, F> {
    fn drop(&mut self) {
        let boxes = self.seats.drain(..).map(|waiter| waiter.mailbox);
        let emptied = boxes.inspect(|mailbox| drop(mailbox.empty()));
        kept::leave(emptied);
    }
}
