//! The line of waiters: first come, first served, and leaving from the middle costs nothing.

use std::task::Waker;
use std::time::Duration;

use super::Resource;
use super::answers::TimeIsUp;
use super::mailbox::MailboxRef;
use super::seat::{Fate, SeatNo, Waiter};
use super::slot::Asker;
use super::view::Seen;
use crate::kept;
use crate::moment::Moment;

/// A place in the line. Given out by `join`, ends with `leave`, or with the lease that came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(super) seat: SeatNo,
    pub(crate) serial: u64,
}

/// With so many seats it is quadrupled at a time, for all are moved, and the others have to wait for that.
const MANY: usize = 64;

/// A linked list through a vector of seats. Those whose fate is decided keep their seat until they have heard of it; those who were granted
/// something, until they have given it back, and those whose time is over, until somebody looks for a seat, for they claim it without a word.
#[derive(Debug)]
pub(crate) struct Queue<R: Resource> {
    seats: Vec<Waiter<R>>,
    /// The seat that was left last.
    free: Option<SeatNo>,
    first: Option<SeatNo>,
    last: Option<SeatNo>,
    len: u32,
    serial: u64,
    /// Of those who are gone, in nanoseconds.
    wait_time: u64,
}

impl<R: Resource> Queue<R> {
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
        until: Option<Moment>,
        now: Moment,
    ) -> (Ticket, MailboxRef<R>) {
        self.serial += 1;
        let serial = self.serial;
        let seat = match self.free {
            Some(seat) => seat,
            None => self.find_seat(asker, now),
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
        waiter.look_again(until, now);
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

    /// There is none on the list of those that are free.
    #[cold]
    fn find_seat(&mut self, asker: Asker, now: Moment) -> SeatNo {
        // Too few would have to be looked for again too soon.
        if self.sweep() <= self.seats.len() / 8 {
            self.add_seats(asker, now);
        }
        self.free.expect("bug: some were added, or found")
    }

    /// Frees the seats of those who know by now that their time is over: they leave without a word. Answers with how many.
    fn sweep(&mut self) -> usize {
        let mut swept = 0;
        for seat in (0..self.seats.len()).map(SeatNo::of) {
            let waiter = self.at(seat);
            if waiter.fate == Fate::TimedOut && waiter.has_claimed() {
                self.free(seat);
                swept += 1;
            }
        }
        swept
    }

    /// As many seats again, or three times as many, and nobody on them. A pool that was busy once keeps them all.
    fn add_seats(&mut self, asker: Asker, now: Moment) {
        let count = self.seats.len();
        let more = if count < MANY {
            count.max(1)
        } else {
            3 * count
        };
        let mailboxes = kept::take_some(more);
        self.seats.reserve_exact(mailboxes.len());
        for mailbox in mailboxes {
            let mut seat = Waiter::nobody(mailbox, asker, now);
            seat.behind = Some(SeatNo::of(self.seats.len() + 1));
            self.seats.push(seat);
        }
        if let Some(last) = self.seats.last_mut() {
            last.behind = self.free.replace(SeatNo::of(count));
        }
    }

    pub(crate) fn first_seat(&self) -> Option<SeatNo> {
        self.first
    }

    /// The first in line.
    pub(crate) fn first(&self) -> Option<&Waiter<R>> {
        self.first.map(|seat| &self.seats[seat.index()])
    }

    /// Decides the fate of the first in line, who then is in line no more. The caller wakes them.
    #[inline]
    pub(crate) fn settle_first(&mut self, fate: Fate) -> Option<(SeatNo, &mut Waiter<R>)> {
        let seat = self.first?;
        Some((seat, self.settle(seat, fate)))
    }

    /// The same for whoever sits there.
    #[inline]
    pub(crate) fn settle(&mut self, seat: SeatNo, fate: Fate) -> &mut Waiter<R> {
        self.unlink(seat);
        let waiter = &mut self.seats[seat.index()];
        waiter.fate = fate;
        waiter
    }

    /// The waiter with this ticket, in line or decided.
    #[inline]
    pub(crate) fn waiter(&mut self, ticket: Ticket) -> &mut Waiter<R> {
        let waiter = &mut self.seats[ticket.seat.index()];
        assert!(
            waiter.serial == ticket.serial,
            "bug: a ticket was used after it ended"
        );
        waiter
    }

    /// Whoever sits there.
    pub(crate) fn at(&self, seat: SeatNo) -> &Waiter<R> {
        &self.seats[seat.index()]
    }

    pub(crate) fn at_mut(&mut self, seat: SeatNo) -> &mut Waiter<R> {
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
        self.wait_time += until.nanoseconds_since(self.seats[seat.index()].since);
        self.free(seat);
    }

    #[inline]
    fn free(&mut self, seat: SeatNo) {
        let waiter = &mut self.seats[seat.index()];
        waiter.behind = self.free.replace(seat);
        waiter.fate = Fate::Gone;
        // A ticket ends once.
        waiter.serial = 0;
    }

    /// The time of whoever sits there is over, and they will find it in their mailbox.
    pub(crate) fn expire(&mut self, seat: SeatNo, seen: Seen<R>) {
        let at = seen.at;
        let waiter = self.settle(seat, Fate::TimedOut);
        let since = waiter.since;
        waiter.mailbox.tell(TimeIsUp { since, seen });
        self.wait_time += at.nanoseconds_since(since);
    }

    /// Everybody who is in line, first to last.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Waiter<R>> {
        std::iter::successors(self.first(), |waiter| {
            waiter.behind.map(|seat| &self.seats[seat.index()])
        })
    }

    /// The number of whoever came last, in line or not.
    pub(crate) fn last_serial(&self) -> u64 {
        self.serial
    }

    /// Is it true of anybody in line who came after the one of this number?
    pub(crate) fn any_newcomer(&self, serial: u64, is_it: impl Fn(&Waiter<R>) -> bool) -> bool {
        if self.serial - serial > self.seats.len() as u64 / 2 {
            // They lie one beside the other.
            let newcomer = |waiter: &Waiter<R>| waiter.is_in_line() && waiter.serial > serial;
            return self
                .seats
                .iter()
                .any(|waiter| is_it(waiter) && newcomer(waiter));
        }
        let seat = |seat: SeatNo| &self.seats[seat.index()];
        std::iter::successors(self.last.map(seat), move |waiter| waiter.ahead.map(seat))
            .take(self.len())
            .take_while(move |waiter| waiter.serial > serial)
            .any(is_it)
    }

    /// Where those sit who were granted something, and may have claimed it or not.
    pub(crate) fn granted(&self) -> Vec<SeatNo> {
        let numbers = (0..self.seats.len()).map(SeatNo::of);
        numbers
            .filter(|seat| self.at(*seat).fate == Fate::Granted)
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

    /// Is anything in any mailbox that was granted?
    pub(crate) fn any_mail(&self) -> bool {
        self.seats.iter().any(|waiter| waiter.mailbox.has_grant())
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

impl<R: Resource> Drop for Queue<R> {
    fn drop(&mut self) {
        // First emptied, and then left: what was in them is dropped where no lock is held that others may need.
        let mailboxes: Vec<_> = self.seats.drain(..).map(|waiter| waiter.mailbox).collect();
        mailboxes.iter().for_each(|mailbox| drop(mailbox.empty()));
        kept::leave(mailboxes.into_iter());
    }
}
