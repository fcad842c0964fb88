//! The ledger: decides who gets what. Plain data behind one short lock.
//!
//! It reads no clock, awaits nothing, logs nothing and calls no user code: it is told facts and the time, and answers with a grant, a
//! ticket, or [`Orders`]. So a pool's whole life can be replayed from a seed, with every invariant checked after each step.
//!
//! # Invariants
//! - **I1 conservation**: each slot is in exactly one state, at most `max_size` are not vacant (more only for what was out when
//!   `max_size` shrank), and counts are sums over the states.
//! - **I2 no idle hands**: while somebody waits and the pool may lend, no fit resource is idle, and either something is on its way for
//!   each who waits, or there is no room for more, or as many opens run as help (`growth.rs`).
//! - **I3 first come, first served**; a ticket that ends leaves no trace.
//! - **I4 one slot, one holder**: `Leased` = living leases + unclaimed grants, which are in a mailbox or on their way there.
//! - **I5** no user code, no wake, no drop of a resource, a waker or an error under the lock.
//! - **I6** after `close` nothing becomes leased, idle or checked.
//! - **I7** every grant ends: claimed, or refused and then passed on, shelved or closed.
//! - **I8** while somebody waits, nothing is set aside (`aside.rs`).
//!
//! [`Ledger::assert_sound`] checks what can be seen from here; tests call it after every step and hold the other half of I4.

mod alarm;
mod answers;
mod aside;
mod breaker;
mod circle;
mod claims;
mod counts;
mod growth;
mod mailbox;
mod orders;
mod queue;
mod seat;
mod slot;
#[cfg(test)]
mod tests;
mod upkeep;
mod view;
mod way_in;
mod way_out;
mod whole;

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use fastrand::Rng;

use alarm::Relay;
pub(crate) use answers::{Answer, Claim, Grant, Refusal, TimeIsUp};
pub(crate) use aside::{Fetched, Terms, may_be_set_aside};
pub(crate) use breaker::Breaker;
pub(crate) use circle::Circle;
use circle::NotInLine;
use counts::Counts;
use growth::Pace;
pub(crate) use mailbox::{Mail, MailboxRef};
pub(crate) use orders::{Orders, Work};
use queue::Queue;
pub(crate) use queue::Ticket;
use seat::Fate;
pub(crate) use slot::{Asker, Label, SlotNo};
use slot::{Slot, State};
pub(crate) use upkeep::Cold;
pub(crate) use view::Report;
pub(crate) use way_out::{AfterFailure, Condition, Manner, Outcome};

use crate::backoff::Backoff;
use crate::config::{IdleOrder, Limits};
use crate::moment::Moment;
use crate::status::Reason;

/// After this long a resource on its way counts as held up, and another is opened beside it if there is room, so that one hung open,
/// check or clean never blocks those who wait. Far longer than a healthy open takes. Whoever waits looks again this often, so that it depends
/// on nobody else.
pub(crate) const HELD_UP_AFTER: Duration = Duration::from_secs(1);

/// What is lent.
pub(crate) trait Resource: Send + 'static {
    /// What a failed open is told by.
    type Failure: Clone + Debug + Send + Sync;

    /// It is in that slot, and this is its number.
    fn opened(&mut self, slot: SlotNo, id: u64);

    /// It comes back, and its last lease is history.
    fn shelve(&mut self);
}

/// In this order: what every trip writes comes first, on the cache line of the lock, for two cores that take turns have to send each
/// other every line of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ledger<R: Resource> {
    queue: Queue<R>,

    // Seldom written.
    slots: Vec<Slot<R>>,
    max_size: usize,
    limits: Arc<Limits>,
    /// For when the alarm is set.
    alarm_at: Option<Moment>,
    relay: Relay,
    closed: bool,
    suspended: bool,
    paused: bool,
    /// Is there a hook to be asked before an idle resource is lent?
    asks: bool,
    /// Somebody keeps the pool up.
    kept_up: bool,
    /// The last round of upkeep left something undone because somebody waited.
    stepped_back: bool,
    vacant: Vec<SlotNo>,
    /// The idle slots, longest unused first.
    shelf: VecDeque<SlotNo>,
    /// The slots that are set aside, and how many may be: those with a tray.
    aside: Vec<SlotNo>,
    trays: usize,
    owed: VecDeque<Work<R>>,
    breaker: Breaker<R::Failure>,
    /// The latest time that was told.
    latest: Cell<Moment>,
    failing: Option<Box<Failing>>,
    pace: Pace,
    /// The last error of an open, whatever came after.
    last_failure: Option<Box<R::Failure>>,
    /// Errors that nobody needs any more. User code, so they are not dropped under the lock.
    waste: Vec<R::Failure>,
    /// When the upkeep task will wake by itself.
    wakes_at: Option<Moment>,
    /// Those who want to know whenever a resource comes or goes: `warm` and `close_within`.
    watchers: Vec<Waker>,
    /// What circles were looked for among.
    not_in_line: NotInLine,
    counts: Counts,
    rng: Rng,
}

/// Opening fails: since when, and how long the next tries are put off.
#[derive(Debug)]
struct Failing {
    since: Moment,
    retry: Backoff,
    /// Until when the tries of one round rest.
    retry_at: Moment,
    line: Backoff,
    refill: Backoff,
    refill_at: Moment,
    /// When those in line may try again, while something may come back to them.
    line_at: Moment,
}

impl<R: Resource> Ledger<R> {
    pub(crate) fn new(
        limits: Arc<Limits>,
        asks: bool,
        trays: usize,
        seed: u64,
        now: Moment,
    ) -> Self {
        Self {
            queue: Queue::new(),
            kept_up: true,
            closed: false,
            suspended: false,
            paused: false,
            asks,
            stepped_back: false,
            slots: Vec::new(),
            counts: Counts::default(),
            max_size: limits.max_size,
            breaker: Breaker::new(now),
            limits,
            not_in_line: NotInLine::new(),
            vacant: Vec::new(),
            shelf: VecDeque::new(),
            aside: Vec::new(),
            trays,
            owed: VecDeque::new(),
            latest: Cell::new(now),
            failing: None,
            pace: Pace::default(),
            last_failure: None,
            waste: Vec::new(),
            wakes_at: None,
            alarm_at: None,
            relay: Relay::Done,
            watchers: Vec::new(),
            rng: Rng::with_seed(seed),
        }
    }

    /// The next piece of owed work, for somebody who has a runtime.
    pub(crate) fn next_work(&mut self) -> Option<Work<R>> {
        let work = self.owed.pop_front();
        if self.owed.is_empty() {
            // An idle pool owes nothing, and needs no room for it.
            self.owed = VecDeque::new();
        }
        work
    }

    /// Calls those who may do the owed work where there is no runtime at hand: the first in line, who needs it most, and whoever waits for
    /// resources to come or go.
    pub(crate) fn call_helpers(&mut self) -> Orders<R> {
        let mut orders = Orders::default();
        if let Some(first) = self.queue.first() {
            orders.wake_soon(first.waker.clone());
        }
        self.tell_watchers(&mut orders);
        orders
    }

    pub(crate) fn take_waste(&mut self) -> Vec<R::Failure> {
        mem::take(&mut self.waste)
    }

    /// The orders of an entry that changes nothing: is there owed work?
    pub(crate) fn remind(&self, now: Moment) -> Orders<R> {
        self.finish(Orders::default(), now)
    }

    /// Wakes `waker` at the next coming or going of a resource.
    pub(crate) fn watch(&mut self, waker: &Waker) {
        self.watchers.push(waker.clone());
    }

    /// The one writer of a slot's state.
    fn become_state(&mut self, slot: SlotNo, next: State, now: Moment) {
        let slot = &mut self.slots[slot];
        debug_assert!(
            slot.state.may_become(next),
            "bug: {:?} became {next:?}",
            slot.state
        );
        slot.state = next;
        let granted_at = mem::replace(&mut slot.since, now);
        // The lease that came of it has ended.
        if let Some(seat) = slot.seat.take() {
            self.queue.clear(seat, granted_at);
        }
    }

    /// Slots that are not vacant.
    fn occupied(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    fn count(&self, state: State) -> usize {
        self.slots.iter().filter(|slot| slot.state == state).count()
    }

    /// Resources that the pool has or is about to have.
    fn total(&self) -> usize {
        self.occupied() - self.count(State::Closing)
    }

    /// May one more be opened now?
    fn has_room(&self) -> bool {
        self.occupied() < self.max_size && self.count(State::Opening) < self.limits.max_opening
    }

    /// Reserves a slot and owes an open for it.
    fn reserve(&mut self, refill: bool, now: Moment) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            let count = self.slots.len();
            if count == self.slots.capacity() {
                // Slots are large, and there will never be more than this.
                let most = self.max_size.saturating_sub(count).max(1);
                self.slots
                    .reserve_exact(count.clamp(4, most.max(4)).min(most));
            }
            self.slots.push(Slot::vacant(now));
            count
        });
        self.become_state(slot, State::Opening, now);
        self.slots[slot].refill = refill;
        self.slots[slot].retire_at = None;
        self.owed.push_back(Work::Open { slot });
    }

    /// Takes the resource in this slot out of service: its close is owed, and its slot free when that is done.
    fn retire(&mut self, slot: SlotNo, reason: Reason, now: Moment) {
        let resource = self.slots[slot]
            .resource
            .take()
            .expect("bug: only what is here can be retired");
        let work = self.closing(slot, resource, reason, now);
        self.owed.push_back(work);
    }

    fn closing(&mut self, slot: SlotNo, resource: R, reason: Reason, now: Moment) -> Work<R> {
        self.become_state(slot, State::Closing, now);
        self.counts.closed.add(reason);
        Work::Close {
            slot,
            id: self.slots[slot].id,
            resource,
            reason,
        }
    }

    /// A slot is free again: whoever waits may have it, or the upkeep task refills.
    fn vacate(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        self.become_state(slot, State::Vacant, now);
        self.slots[slot].home = None;
        self.vacant.push(slot);
        self.tell_watchers(orders);
        self.serve(now, orders);
        if self.shortage() > 0 {
            self.due(now, orders);
        }
    }

    fn tell_watchers(&mut self, orders: &mut Orders<R>) {
        if !self.watchers.is_empty() {
            self.watchers.drain(..).for_each(|waker| orders.wake(waker));
        }
    }

    /// The upkeep task must be awake at `at`.
    fn due(&mut self, at: Moment, orders: &mut Orders<R>) {
        if self.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wakes_at = Some(at);
            orders.ring = true;
        }
    }

    /// Puts an idle slot on the shelf, where it belongs by its last use: a check does not make it look used.
    fn shelve(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        self.put_on_shelf(slot, now);
        let entry = &self.slots[slot];
        // What was kept so far, because it was needed, may go now.
        let coldest = self.shelf.front().filter(|_| self.is_evictable());
        let coldest = coldest.map_or(entry, |slot| &self.slots[*slot]);
        let dates = [
            self.limits
                .idle_timeout
                .map(|timeout| coldest.used_at + timeout),
            self.limits
                .heartbeat_interval
                .map(|interval| entry.proven_at() + interval),
            entry.expires_at,
            entry.retire_at,
        ];
        if let Some(at) = dates.into_iter().flatten().min() {
            self.due(at, orders);
        }
    }

    fn put_on_shelf(&mut self, slot: SlotNo, now: Moment) {
        self.become_state(slot, State::Idle, now);
        let used_at = self.slots[slot].used_at;
        let place = match self.shelf.back() {
            Some(last) if self.slots[*last].used_at > used_at => self
                .shelf
                .partition_point(|other| self.slots[*other].used_at <= used_at),
            _ => self.shelf.len(),
        };
        self.shelf.insert(place, slot);
    }

    /// The idle slot that is lent next, or the one after `passed` others.
    fn shelved(&self, passed: usize) -> Option<SlotNo> {
        let place = match self.limits.idle_order {
            IdleOrder::Hot => self.shelf.len().checked_sub(passed + 1)?,
            IdleOrder::Oldest => passed,
        };
        self.shelf.get(place).copied()
    }

    fn unshelve(&mut self, slot: SlotNo) {
        let place = match self.limits.idle_order {
            IdleOrder::Hot => self.shelf.iter().rposition(|other| *other == slot),
            IdleOrder::Oldest => self.shelf.iter().position(|other| *other == slot),
        };
        self.shelf
            .remove(place.expect("bug: every idle slot is on the shelf"));
    }

    /// The end of an entry: what is left to be done without the lock.
    fn finish(&self, mut orders: Orders<R>, now: Moment) -> Orders<R> {
        self.end(&mut orders, now);
        orders
    }

    /// The same, in place.
    #[inline]
    fn end(&self, orders: &mut Orders<R>, now: Moment) {
        self.stay_sound(now);
        orders.owed = !self.owed.is_empty();
        orders.waste = !self.waste.is_empty();
    }
}
