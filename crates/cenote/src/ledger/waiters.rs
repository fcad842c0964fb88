//! The queue of waiters: first come, first served. Leaving from the middle takes constant time.
//!
//! Seats and mailboxes are used again, so that a wait allocates nothing.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Waker;

use super::Resource;
use super::mailbox::MailboxRef;
use super::request::{Ask, Begun};
use super::slot::Asker;
use crate::time::Moment;

/// A place in the queue. It ends when the outcome of the wait is delivered, or when the waiter
/// withdraws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    seat: SeatNo,
    pub(crate) serial: u64,
}

/// How many free seats and mailboxes are kept for later waiters. The memory of a larger crowd is
/// freed when the crowd is gone.
const KEPT: usize = 256;

/// A linked list through a vector of seats.
///
/// Deadlines are found without a walk: most waiters have the same timeout, so their deadlines come
/// in the order of the queue, and the first of those waiters has the first deadline. Only a waiter
/// with a deadline before that of a waiter ahead of it is listed in `early`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Waiters<R: Resource> {
    first: Option<SeatNo>,
    last: Option<SeatNo>,
    /// The seat that was freed last.
    free: Option<SeatNo>,
    len: u32,
    /// How many waiters want a place only.
    for_places: u32,
    serial: u64,
    /// The first waiter whose deadline is in order, and the deadline of the last one.
    in_order: Option<SeatNo>,
    last_in_order: Moment,
    seats: Vec<Waiter<R>>,
    spare: Vec<MailboxRef<R>>,
    /// How many were queued a second time.
    rejoined: u64,
    early: BTreeMap<(Moment, u64), SeatNo>,
}

/// In this order, so that a giver on another core touches the first cache line only.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Waiter<R: Resource> {
    /// The waker of the last poll. `None` once it was taken to be woken, until the next poll.
    pub(crate) waker: Option<Waker>,
    pub(crate) asker: Asker,
    /// `None` if the seat is free.
    mailbox: Option<MailboxRef<R>>,
    /// The next waiter, or the next free seat.
    behind: Option<SeatNo>,
    /// The waiter before this one. Means nothing for the first.
    ahead: Option<SeatNo>,

    pub(crate) since: Moment,
    pub(crate) deadline: Moment,
    /// Never used again.
    serial: u64,
    /// Grows along the queue.
    pub(crate) rank: u64,
    listed: Listed,
    /// It wants a place only.
    for_place: bool,
}

/// Where a waiter's deadline is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    /// By its place in the queue.
    InOrder,
    /// In `early`.
    Early,
    /// It has no deadline.
    Not,
}

/// A waiter that has left the queue.
pub(super) struct Departed<R: Resource> {
    pub(super) waker: Option<Waker>,
    pub(super) mailbox: MailboxRef<R>,
    pub(super) since: Moment,
}

impl<R: Resource> Waiters<R> {
    pub(crate) const fn new() -> Self {
        Self {
            seats: Vec::new(),
            free: None,
            first: None,
            last: None,
            len: 0,
            for_places: 0,
            serial: 0,
            rejoined: 0,
            in_order: None,
            last_in_order: Moment::PAST,
            early: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// How many waiters ever joined.
    pub(crate) fn joined(&self) -> u64 {
        self.serial - self.rejoined
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// For how many seats there is memory.
    #[cfg(all(test, not(cenote_model)))]
    pub(super) fn seats(&self) -> usize {
        self.seats.capacity()
    }

    /// Queues a waiter: behind all others, or before them if it keeps its old place.
    #[inline(always)]
    pub(crate) fn join(
        &mut self,
        asker: &Asker,
        waker: Option<Waker>,
        begun: &Begun,
    ) -> (Ticket, MailboxRef<R>) {
        self.serial += 1;
        let serial = self.serial;
        let seat = self.free_seat(asker, begun.since);
        let first = self.first.filter(|_| begun.again);
        let listed = self.list(begun.deadline, first.is_some(), serial, seat);
        let mailbox = self.spare.pop().unwrap_or_default();
        // Field by field: a value that is built first and then moved costs more than all the rest.
        let waiter = &mut self.seats[seat.index()];
        waiter.waker = waker;
        waiter.asker = *asker;
        waiter.mailbox = Some(Arc::clone(&mailbox));
        waiter.behind = None;
        waiter.ahead = self.last;
        waiter.since = begun.since;
        waiter.deadline = begun.deadline;
        waiter.serial = serial;
        waiter.rank = serial;
        waiter.listed = listed;
        waiter.for_place = begun.ask == Ask::Place;
        self.for_places += u32::from(waiter.for_place);
        self.len += 1;
        if begun.again {
            self.rejoined += u64::from(begun.waited);
        }
        match (first, self.last) {
            (Some(first), _) => self.link_before(first, seat),
            (None, Some(last)) => {
                self.seats[last.index()].behind = Some(seat);
                self.last = Some(seat);
            }
            (None, None) => {
                self.first = Some(seat);
                self.last = Some(seat);
            }
        }
        (Ticket { seat, serial }, mailbox)
    }

    #[cold]
    fn link_before(&mut self, first: SeatNo, seat: SeatNo) {
        let rank = self.seats[first.index()].rank.saturating_sub(1);
        self.seats[first.index()].ahead = Some(seat);
        let waiter = &mut self.seats[seat.index()];
        waiter.behind = Some(first);
        waiter.ahead = None;
        waiter.rank = rank;
        self.first = Some(seat);
    }

    /// Takes a seat off the list of free ones, or adds one.
    #[inline]
    fn free_seat(&mut self, asker: &Asker, now: Moment) -> SeatNo {
        match self.free {
            Some(seat) => {
                self.free = self.seats[seat.index()].behind;
                seat
            }
            None => self.add_seat(asker, now),
        }
    }

    #[cold]
    fn add_seat(&mut self, asker: &Asker, now: Moment) -> SeatNo {
        let seat = SeatNo::of(self.seats.len());
        if self.seats.is_empty() {
            // Seats are large, and many pools never need a second one.
            self.seats.reserve_exact(1);
        }
        self.seats.push(Waiter {
            waker: None,
            asker: *asker,
            mailbox: None,
            behind: None,
            ahead: None,
            since: now,
            deadline: now,
            serial: 0,
            rank: 0,
            listed: Listed::Not,
            for_place: false,
        });
        seat
    }

    #[inline]
    fn list(&mut self, deadline: Moment, first: bool, serial: u64, seat: SeatNo) -> Listed {
        if deadline == Moment::NEVER {
            return Listed::Not;
        }
        if first || self.in_order.is_some() && deadline < self.last_in_order {
            return self.list_early(deadline, serial, seat);
        }
        self.in_order.get_or_insert(seat);
        self.last_in_order = deadline;
        Listed::InOrder
    }

    #[cold]
    fn list_early(&mut self, deadline: Moment, serial: u64, seat: SeatNo) -> Listed {
        self.early.insert((deadline, serial), seat);
        Listed::Early
    }

    /// The waiter with this ticket, if it is still in the queue. If not, the outcome is in its
    /// mailbox.
    #[inline]
    pub(crate) fn waiter(&mut self, ticket: Ticket) -> Option<&mut Waiter<R>> {
        let waiter = self.seats.get_mut(ticket.seat.index())?;
        (waiter.serial == ticket.serial).then_some(waiter)
    }

    pub(crate) fn first(&self) -> Option<&Waiter<R>> {
        self.first.map(|seat| &self.seats[seat.index()])
    }

    /// Returns whether the first waiter wants a place only.
    #[inline]
    pub(super) fn wants_place(&self) -> bool {
        self.for_places > 0 && self.first().is_some_and(|it| it.for_place)
    }

    /// Removes the first waiter.
    #[inline]
    pub(super) fn take_first(&mut self) -> Option<Departed<R>> {
        let seat = self.first?;
        Some(self.remove(seat))
    }

    /// Removes the waiter with this ticket, if it is still in the queue.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<Departed<R>> {
        self.waiter(ticket)?;
        Some(self.remove(ticket.seat))
    }

    /// Removes a waiter whose deadline has passed.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Option<(u64, Departed<R>)> {
        let early = self.early.first_key_value().map(|(_, seat)| *seat);
        let mut overdue = [self.in_order, early].into_iter().flatten();
        let seat = overdue.find(|seat| self.seats[seat.index()].deadline <= now)?;
        let rank = self.seats[seat.index()].rank;
        Some((rank, self.remove(seat)))
    }

    /// The first deadline of all waiters.
    pub(super) fn next_deadline(&self) -> Moment {
        let in_order = self.in_order.map(|seat| self.seats[seat.index()].deadline);
        let early = self.early.keys().next().map(|(deadline, _)| *deadline);
        let next = in_order.into_iter().chain(early).min();
        next.unwrap_or(Moment::NEVER)
    }

    /// Takes the wakers of the first `count` waiters, so that they look again.
    pub(super) fn wakers(&mut self, count: usize) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let mut next = self.first;
        for _ in 0..count {
            let Some(seat) = next else { break };
            let waiter = &mut self.seats[seat.index()];
            wakers.extend(waiter.waker.take());
            next = waiter.behind;
        }
        wakers
    }

    /// All waiters, first to last.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Waiter<R>> {
        std::iter::successors(self.first(), |waiter| {
            waiter.behind.map(|seat| &self.seats[seat.index()])
        })
    }

    /// The lease of a waiter has ended, so its mailbox can serve the next waiter, unless the waiter
    /// still has it.
    #[inline]
    pub(super) fn recycle(&mut self, mailbox: MailboxRef<R>) {
        // No more than there were waiters at once.
        let most = self.seats.len().min(KEPT);
        if self.spare.len() < most && Arc::strong_count(&mailbox) == 1 {
            self.spare.push(mailbox);
        }
    }

    #[inline(always)]
    fn remove(&mut self, seat: SeatNo) -> Departed<R> {
        self.unlink(seat);
        let waiter = &mut self.seats[seat.index()];
        waiter.behind = self.free.replace(seat);
        self.for_places -= u32::from(waiter.for_place);
        let serial = std::mem::take(&mut waiter.serial);
        if waiter.listed == Listed::Early {
            self.early.remove(&(waiter.deadline, serial));
        }
        let waiter = &mut self.seats[seat.index()];
        let departed = Departed {
            waker: waiter.waker.take(),
            mailbox: waiter.mailbox.take().expect("bug: a waiter has a mailbox"),
            since: waiter.since,
        };
        if self.len == 0 && self.seats.len() > KEPT {
            self.free_seats();
        }
        departed
    }

    /// The last of a crowd has left.
    #[cold]
    fn free_seats(&mut self) {
        self.seats = Vec::new();
        self.free = None;
    }

    #[inline]
    fn unlink(&mut self, seat: SeatNo) {
        let Waiter { ahead, behind, .. } = self.seats[seat.index()];
        self.len -= 1;
        if self.in_order == Some(seat) {
            let seats = &self.seats;
            let mut next = behind;
            while let Some(seat) = next.filter(|seat| seats[seat.index()].listed != Listed::InOrder)
            {
                next = seats[seat.index()].behind;
            }
            self.in_order = next;
        }
        if self.first == Some(seat) {
            // The new first waiter is not written to: its cache line may be on another core.
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

/// The number of a seat, from one. Small, because each seat has two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeatNo(NonZeroU32);

impl SeatNo {
    fn of(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("there are fewer than four billion waiters"))
    }

    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
