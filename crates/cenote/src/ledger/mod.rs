//! The ledger: decides who gets what. Plain data behind one short lock.
//!
//! It reads no clock, awaits nothing, logs nothing and calls no user code: the shell tells it facts
//! and the time, and it returns a grant, a ticket, or [`Orders`]. So a pool's whole life can be
//! replayed from a seed, with every invariant checked after each step.
//!
//! # Invariants
//! - **I1 conservation**: each slot is in exactly one state, at most `max_size` are not vacant
//!   (more only for leases that were out when `max_size` shrank), and counts agree with the states.
//! - **I2 no idle hands**: while a waiter is queued and the pool may lend, no fit resource is idle,
//!   and either a resource is on its way for each waiter, or there is no room for more, or as many
//!   opens run as help (`growth.rs`).
//! - **I3 first come, first served**; a ticket that ends leaves no trace.
//! - **I4 one slot, one holder**: `Leased` = living leases + unclaimed grants, each in the mailbox
//!   of its waiter.
//! - **I5** no user code, no wake, no drop of a resource, a waker or an error under the lock.
//! - **I6** after `close` no slot becomes leased, idle or checked.
//! - **I7** every wait ends with one mail: a grant that is claimed or revoked, a place, or an
//!   error. A waiter is in the queue or has mail, never neither.
//! - **I8** while a waiter is queued, no slot is on a tray (`trays.rs`).
//! - **I9** while the pool has to prove that its backend is back, it lends nothing, and the proof
//!   is under way unless opens have just failed or all resources are out (`proof.rs`).
//!
//! `sound.rs` checks them at the end of every entry, in our tests, models and simulation. The tests
//! hold the other half of I4 and I7.
//!
//! # Reading order
//! The entries are `request.rs`, `give_back.rs`, `work.rs`, `upkeep.rs`, `alarm_round.rs` and
//! `whole.rs`. They do not call each other. All of them decide by `serve.rs`, `deadlines.rs`,
//! `due.rs`, `owed.rs`, `places.rs` and `proof.rs`, and those look at the data: `slot.rs`,
//! `shelf.rs`, `waiters.rs`, `mailbox.rs`, `trays.rs`, `growth.rs`.

mod alarm_round;
mod circle;
mod deadlines;
mod due;
mod give_back;
mod growth;
#[cfg(all(test, cenote_model))]
mod handover;
mod inside;
mod mailbox;
mod orders;
mod owed;
mod places;
mod proof;
mod report;
mod request;
mod serve;
mod shelf;
mod slot;
#[cfg(any(test, cenote_model, feature = "_sound"))]
mod sound;
#[cfg(all(test, not(cenote_model)))]
mod tests;
mod trays;
mod upkeep;
mod waiters;
mod watchers;
mod whole;
mod work;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

pub(crate) use deadlines::looks_every;
pub(crate) use give_back::{Condition, Manner, Returned};
use growth::{Failing, Pace};
pub(crate) use mailbox::{BoxedError, Mail, MailboxRef};
pub(crate) use orders::{Many, Orders, Rest};
pub(crate) use owed::{Job, Work};
pub(crate) use request::{Answer, Ask, Begun};
pub(crate) use shelf::Recall;
pub(crate) use slot::{Asker, Label, LabelParts, SlotNo};
use slot::{Slot, State};
pub(crate) use trays::{OnTray, TrayNo, may_use_trays};
pub(crate) use waiters::Ticket;
use waiters::Waiters;
pub(crate) use watchers::WatchNo;
use watchers::Watchers;
pub(crate) use whole::Breaker;
pub(crate) use work::{AfterFailure, Outcome};

use crate::breaker::BreakerState;
use crate::config::Limits;
use crate::error::OpenError;
use crate::rt::sync::AtomicU64;
use crate::status::Status;
use crate::time::Moment;

/// After this long a resource on its way counts as held up: another is opened beside it if there is
/// room, and its open no longer counts against `max_opening`. So one hung open, check or clean
/// never blocks the waiters. Far longer than a healthy open takes. The first waiters look again
/// this often.
pub(crate) const HELD_UP_AFTER: Duration = Duration::from_secs(1);

/// What a pool lends.
pub(crate) trait Resource: 'static {
    /// The error of the manager that opens it.
    type Error: Debug + 'static;

    /// The ledger has put the resource into this slot, and given it this number.
    fn opened(&mut self, slot: SlotNo, id: u64);

    /// The ledger lends it for the `uses`th time. A fresh one comes straight from its open.
    fn lent(&mut self, uses: u64, fresh: bool);

    /// The slot that `opened` named.
    fn slot(&self) -> SlotNo;
}

/// The fields that every hand-over writes come first, on the cache line of the lock. Two cores that
/// take turns send each other every line that is written.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ledger<R: Resource> {
    /// Leases handed out, claimed or not.
    lent: u64,
    /// How long waiters waited, in nanoseconds.
    wait_time: u64,
    /// How long the leases that came back were out, in nanoseconds.
    held_time: u64,
    /// No unclaimed grant has an earlier deadline.
    unclaimed_until: Moment,
    waiters: Waiters<R>,

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
    looks_every: Duration,
    closed: bool,
    suspended: bool,
    /// A backend that has too many connections is waited for.
    patient: bool,
    paused: bool,
    /// There is a hook to be asked before an idle resource is lent.
    asks: bool,
    /// An upkeep task runs.
    upkeep_runs: bool,
    /// The last round of upkeep left something undone because a waiter was queued.
    stepped_back: bool,
    vacant: Vec<SlotNo>,
    /// The idle slots, longest unused first.
    shelf: VecDeque<SlotNo>,
    /// The slots that are being opened, checked or cleaned.
    working: Vec<SlotNo>,
    /// Places that callers have reserved.
    reserved: usize,
    /// Of those, the places that were granted to waiters and may be unclaimed.
    placed: Vec<places::Placed<R>>,
    trays: trays::Taken,
    /// The last number of a resource, if the pool and its annex count together.
    pub(crate) numbers: Option<Arc<AtomicU64>>,
    owed: VecDeque<Work<R>>,
    breaker: Breaker<R::Error>,
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
    last_failure: Option<Box<OpenError<R::Error>>>,
    /// When the upkeep task will wake by itself.
    wakes_at: Option<Moment>,
    watchers: Watchers,
    /// The circle that was found last.
    circle: Option<circle::Found>,
    /// The counters since the pool was built, without those that every hand-over writes. The other
    /// fields are not used.
    counts: Status,
    /// What the report of a timeout says beside the state of the pool.
    pub(crate) note: Option<Arc<str>>,
    built_at: Moment,
    rng: Rng,
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
            held_time: 0,
            unclaimed_until: Moment::NEVER,
            slots: Vec::new(),
            states: [0; State::COUNT],
            max_size: limits.max_size,
            looks_every: looks_every(&limits),
            breaker: Breaker {
                state: BreakerState::Active,
                since: now,
                ask_at: None,
                proving: false,
                cause: None,
            },
            limits,
            name,
            alarm_at: None,
            looked_at: now,
            closed: false,
            suspended: false,
            patient: false,
            paused: false,
            asks,
            upkeep_runs: true,
            stepped_back: false,
            vacant: Vec::new(),
            shelf: VecDeque::new(),
            working: Vec::new(),
            reserved: 0,
            placed: Vec::new(),
            trays: trays::Taken::new(trays),
            numbers: None,
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
            wakes_at: None,
            watchers: Watchers::default(),
            circle: None,
            counts: Status::default(),
            note: None,
            built_at: now,
            rng: Rng::with_seed(seed),
        }
    }

    /// The one writer of a slot's state.
    #[inline]
    fn become_state(&mut self, slot: SlotNo, next: State, now: Moment) {
        let entry = &mut self.slots[slot];
        let before = mem::replace(&mut entry.state, next);
        debug_assert!(before.may_become(next), "bug: {before:?} became {next:?}");
        entry.since = now;
        // The lease of a waiter has ended.
        if let Some(mailbox) = entry.mailbox.take() {
            self.waiters.recycle(mailbox);
        }
        if before != next {
            self.states[before as usize] -= 1;
            self.states[next as usize] += 1;
        }
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

    /// The end of an entry: notes what is left to be done without the lock.
    #[inline]
    pub(crate) fn end(&mut self, orders: &mut Orders<R>, now: Moment) {
        self.stay_sound(now);
        if self.is_watched_closely() {
            self.tell_close_watchers(orders);
        }
        orders.set_owed(!self.owed.is_empty());
    }

    #[cfg(not(any(test, cenote_model, feature = "_sound")))]
    #[inline]
    fn stay_sound(&self, _: Moment) {}
}
