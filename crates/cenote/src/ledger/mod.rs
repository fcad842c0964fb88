//! The ledger: decides who gets what. Plain data behind one short lock.
//!
//! It reads no clock, awaits nothing, logs nothing and calls no user code: the shell tells it facts and the time, and it returns a grant, a
//! ticket, or [`Orders`]. So a pool's whole life can be replayed from a seed, with every invariant checked after each step.
//!
//! # Invariants
//! - **I1 conservation**: each slot is in exactly one state, at most `max_size` are not vacant (more only for what was out when
//!   `max_size` shrank), and counts agree with the states.
//! - **I2 no idle hands**: while a waiter is queued and the pool may lend, no fit resource is idle, and either a resource is on its way for
//!   each waiter, or there is no room for more, or as many opens run as help (`growth.rs`).
//! - **I3 first come, first served**; a ticket that ends leaves no trace.
//! - **I4 one slot, one holder**: `Leased` = living leases + unclaimed grants, each in the mailbox of its waiter.
//! - **I5** no user code, no wake, no drop of a resource, a waker or an error under the lock.
//! - **I6** after `close` no slot becomes leased, idle or checked.
//! - **I7** every wait ends with one mail: a grant that is claimed or revoked, or a refusal. A waiter is in the queue or has mail, never
//!   neither.
//! - **I8** while a waiter is queued, no slot is on a tray (`trays.rs`).
//!
//! [`Ledger::assert_sound`] checks what can be seen from here; our tests, models and simulation call it after every step and hold the other
//! half of I4 and I7.

mod answers;
mod breaker;
mod circle;
mod counts;
mod growth;
#[cfg(all(test, cenote_model))]
mod handover;
mod mailbox;
mod orders;
mod report;
mod request;
mod shelf;
mod slot;
#[cfg(any(test, cenote_model, feature = "_sound"))]
mod sound;
#[cfg(all(test, not(cenote_model)))]
mod tests;
mod timeouts;
mod trays;
mod upkeep;
mod waiters;
mod watchers;
mod way_out;
mod whole;
mod work;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

pub(crate) use answers::{Answer, Grant, Refusal, TimeIsUp, Unavailable};
pub(crate) use breaker::Breaker;
use counts::Counts;
use growth::Pace;
pub(crate) use mailbox::{Mail, MailboxRef};
pub(crate) use orders::{Orders, Work};
pub(crate) use report::Report;
pub(crate) use request::Again;
pub(crate) use slot::{Asker, Label, SlotNo};
use slot::{Slot, State};
pub(crate) use trays::{OffTray, Terms, TrayNo, may_use_trays};
pub(crate) use upkeep::Cold;
pub(crate) use waiters::Ticket;
use waiters::Waiters;
pub(crate) use watchers::WatchNo;
use watchers::Watchers;
pub(crate) use way_out::{AfterFailure, Condition, Manner, Outcome};

use crate::backoff::Backoff;
use crate::config::Limits;
use crate::moment::Moment;

/// After this long a resource on its way counts as held up: another is opened beside it if there is room, and its open no longer counts
/// against `max_opening`. So one hung open, check or clean never blocks the waiters. Far longer than a healthy open takes. The first
/// waiters look again this often.
pub(crate) const HELD_UP_AFTER: Duration = Duration::from_secs(1);

/// What a pool lends.
pub(crate) trait Resource: Send + 'static {
    /// The error of a failed open.
    type Failure: Clone + Debug + Send + Sync;

    /// The resource is in this slot, and this is its number.
    fn opened(&mut self, slot: SlotNo, id: u64);
}

/// In this order: the fields that every contended trip writes come first, on the cache line of the lock, because two cores that take turns
/// have to send each other every line of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ledger<R: Resource> {
    waiters: Waiters<R>,
    /// Leases handed out, claimed or not.
    lent: u64,
    /// How long waiters waited, in nanoseconds.
    wait_time: u64,
    /// No unclaimed grant has an earlier deadline.
    unclaimed_until: Moment,

    // Seldom written.
    slots: Vec<Slot<R>>,
    /// How many slots are in each state.
    states: [usize; State::COUNT],
    max_size: usize,
    limits: Arc<Limits>,
    name: Arc<str>,
    /// When the alarm is set for.
    alarm_at: Option<Moment>,
    /// When the first waiters were last asked to look again.
    looked_at: Moment,
    closed: bool,
    suspended: bool,
    paused: bool,
    /// There is a hook to be asked before an idle resource is lent.
    asks: bool,
    /// An upkeep task runs.
    kept_up: bool,
    /// The last round of upkeep left something undone because a waiter was queued.
    stepped_back: bool,
    vacant: Vec<SlotNo>,
    /// The idle slots, longest unused first.
    shelf: VecDeque<SlotNo>,
    /// The slots that are being opened, checked or cleaned.
    working: Vec<SlotNo>,
    trays: trays::Taken,
    owed: VecDeque<Work<R>>,
    breaker: Breaker<R::Failure>,
    /// When a resource was last found dead: resources proven alive before are unproven again.
    dead_at: Moment,
    /// Since when callers wait and none was served. A waiter that gives up does not end it.
    unserved_since: Option<Moment>,
    /// When a waiter last gave up: it timed out, was dropped, or was told that an open failed.
    gave_up_at: Moment,
    /// A waiter timed out while all it waited for was an open, and no open has succeeded since.
    open_overdue: Option<Moment>,
    #[cfg(any(test, cenote_model, feature = "_sound"))]
    checked: sound::Checked,
    failing: Option<Box<Failing>>,
    pace: Pace,
    /// The last error of an open, whatever came after.
    last_failure: Option<Box<R::Failure>>,
    /// Errors that are not needed any more. Their destructors are user code, so they are not dropped under the lock.
    waste: Vec<R::Failure>,
    /// When the upkeep task will wake by itself.
    wakes_at: Option<Moment>,
    watchers: Watchers,
    /// The circle that was found last.
    circle: Option<circle::Found>,
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
    /// When an open may be tried again for waiters, while a lease may come back to them.
    line_at: Moment,
}

impl<R: Resource> Ledger<R> {
    pub(crate) fn new(
        limits: Arc<Limits>,
        name: Arc<str>,
        asks: bool,
        trays: usize,
        seed: u64,
        now: Moment,
    ) -> Self {
        Self {
            waiters: Waiters::new(),
            lent: 0,
            wait_time: 0,
            unclaimed_until: Moment::NEVER,
            slots: Vec::new(),
            states: [0; State::COUNT],
            max_size: limits.max_size,
            breaker: Breaker::new(now),
            limits,
            name,
            alarm_at: None,
            looked_at: now,
            closed: false,
            suspended: false,
            paused: false,
            asks,
            kept_up: true,
            stepped_back: false,
            vacant: Vec::new(),
            shelf: VecDeque::new(),
            working: Vec::new(),
            trays: trays::Taken::new(trays),
            owed: VecDeque::new(),
            dead_at: Moment::PAST,
            unserved_since: None,
            gave_up_at: Moment::PAST,
            open_overdue: None,
            #[cfg(any(test, cenote_model, feature = "_sound"))]
            checked: sound::Checked::new(now),
            failing: None,
            pace: Pace::default(),
            last_failure: None,
            waste: Vec::new(),
            wakes_at: None,
            watchers: Watchers::default(),
            circle: None,
            counts: Counts::default(),
            rng: Rng::with_seed(seed),
        }
    }

    pub(crate) fn take_waste(&mut self) -> Vec<R::Failure> {
        mem::take(&mut self.waste)
    }

    /// The orders of an entry that changes nothing: is there owed work?
    pub(crate) fn remind(&self, now: Moment) -> Orders<R> {
        self.finish(Orders::default(), now)
    }

    /// The one writer of a slot's state.
    fn become_state(&mut self, slot: SlotNo, next: State, now: Moment) {
        let entry = &mut self.slots[slot];
        let before = mem::replace(&mut entry.state, next);
        debug_assert!(before.may_become(next), "bug: {before:?} became {next:?}");
        entry.since = now;
        // The lease that came of a wait has ended.
        if let Some(mailbox) = entry.mailbox.take() {
            self.waiters.recycle(mailbox);
        }
        self.states[before as usize] -= 1;
        self.states[next as usize] += 1;
        if before.is_work() != next.is_work() {
            self.list_work(slot, next.is_work());
        }
    }

    /// Slots that are not vacant.
    fn occupied(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    fn count(&self, state: State) -> usize {
        self.states[state as usize]
    }

    /// Resources that the pool has or is about to have.
    fn total(&self) -> usize {
        self.occupied() - self.count(State::Closing)
    }

    /// Leases that are out, or granted and not claimed.
    fn in_use(&self) -> usize {
        self.count(State::Leased) + self.count(State::OnTray)
    }

    /// How many leases came back.
    fn released(&self) -> u64 {
        self.lent - self.counts.detached - self.in_use() as u64
    }

    /// A slot is free again: a waiter may have it, or the upkeep task refills.
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

    /// The upkeep task must be awake at `at`.
    fn due(&mut self, at: Moment, orders: &mut Orders<R>) {
        if self.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wakes_at = Some(at);
            orders.ring = true;
        }
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

    #[cfg(not(any(test, cenote_model, feature = "_sound")))]
    #[inline]
    fn stay_sound(&self, _: Moment) {}
}
