//! Random histories of the ledger, with a check of every invariant after every step.
//!
//! The world keeps its own account of leases, waiters and work, so that the ledger and its callers
//! each hold one half of every equation.

use std::env;
use std::ops::Range;
use std::thread;

use super::history_callers::{Caller, Ends};
use super::*;

/// Miri is slow, and needs few histories to see what it can see.
const HISTORIES: u64 = if cfg!(miri) { 4 } else { 10_000 };
const STEPS: usize = 80;

#[test]
fn every_invariant_holds_after_every_step_of_ten_thousand_histories() {
    let seeds = seeds();
    let is_thorough = seeds.end - seeds.start >= 10_000;
    let mut edges = Edges::default();
    for seed in seeds {
        let _replay = Replay(seed);
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            let before = world.states();
            world.step();
            world.check();
            edges.note(&before, &world.states());
        }
        world.recover();
        world.end();
    }
    if is_thorough {
        edges.assert_all_taken();
    }
}

/// The same seeds every time; as many others as `CENOTE_HISTORIES` says; or that of `CENOTE_SEED`.
fn seeds() -> Range<u64> {
    let number_in = |variable| {
        let value = env::var(variable).ok()?;
        Some(value.parse().expect("it is a number"))
    };
    if let Some(seed) = number_in("CENOTE_SEED") {
        return seed..seed + 1;
    }
    let Some(histories) = number_in("CENOTE_HISTORIES") else {
        return 0..HISTORIES;
    };
    let start = u64::from(fastrand::u32(..)) << 31;
    println!("seeds from {start}");
    start..start + histories
}

/// Says how to replay a history that failed.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("replay with CENOTE_SEED={}", self.0);
        }
    }
}

/// The edges between states that slots have taken in one step.
#[derive(Default)]
struct Edges([[bool; State::COUNT]; State::COUNT]);

impl Edges {
    fn note(&mut self, before: &[(State, Moment)], after: &[(State, Moment)]) {
        for (before, after) in before.iter().zip(after) {
            if before != after {
                self.0[before.0 as usize][after.0 as usize] = true;
            }
        }
    }

    fn assert_all_taken(&self) {
        use State::{Checking, Cleaning, Closing, Idle, Leased, OnTray, Opening, Vacant};
        let all = [
            Vacant, Opening, Idle, Leased, OnTray, Checking, Cleaning, Closing,
        ];
        let pairs = all.into_iter().flat_map(|from| all.map(|to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from.may_become(*to)) {
            let is_taken = self.0[from as usize][to as usize];
            assert!(is_taken, "no slot that was {from:?} became {to:?}");
        }
    }
}

/// A lease.
pub(super) struct Lent {
    pub(super) slot: SlotNo,
    pub(super) token: Token,
    pub(super) tray: Option<TrayNo>,
}

/// A ledger, and all that is around it.
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) now: Moment,
    pub(super) ledger: Ledger<Token>,
    pub(super) leases: Vec<Lent>,
    pub(super) trays: Vec<Option<OnTray<Token>>>,
    /// The queued callers and those with mail, in the order in which they are to be served.
    pub(super) callers: Vec<Caller>,
    pub(super) watchers: Vec<(Option<WatchNo>, Arc<Woken>)>,
    /// The moments that the alarm was set for.
    pub(super) alarms: BTreeSet<Moment>,
    /// The work that was begun.
    pub(super) begun: Vec<Work<Token>>,
    /// The resources that the ledger has: idle, granted and unclaimed, or with owed work.
    pub(super) inside: BTreeSet<Token>,
    /// How many places are reserved, and claimed by their callers.
    pub(super) permits: usize,
    /// How many resources may exist: `max_size`, or as many as there were when it shrank.
    pub(super) cap: usize,
    /// The same for leases and reserved places together.
    pub(super) promised: usize,
    /// How many callers were queued.
    pub(super) joined: i64,
    pub(super) minted: u64,
    pub(super) closed: bool,
    pub(super) ends: Ends,
    pub(super) before: Status,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let now = crate::time::now();
        // Sometimes more than a request looks at on the shelf.
        let max_size = match rng.u8(0..6) {
            0 => rng.usize(9..=12),
            _ => rng.usize(1..=5),
        };
        let config = Config {
            max_size,
            min_size: rng.usize(0..=max_size),
            min_idle: rng.usize(0..=max_size),
            max_opening: rng.usize(1..=3),
            max_uses: rng.bool().then_some(3),
            max_waiters: rng.bool().then_some(6),
            probes: rng.usize(1..=2),
            self_probe: rng.bool(),
            heartbeat_interval: rng.bool().then_some(Duration::from_secs(3)),
            idle_timeout: rng.bool().then_some(Duration::from_secs(8)),
            max_lifetime: rng.bool().then_some(Duration::from_secs(20)),
            check_after_idle: [None, Some(Duration::ZERO), Some(Duration::from_secs(2))]
                [rng.usize(0..3)],
            leak_after: rng.bool().then_some(Duration::from_secs(5)),
            on_open_error: [OnOpenError::Fail, OnOpenError::Retry][rng.usize(0..2)],
            idle_order: [IdleOrder::Hot, IdleOrder::Oldest][rng.usize(0..2)],
            nested: [Nested::Allow, Nested::Report, Nested::Deny][rng.usize(0..3)],
            ..Config::default()
        };
        let limits = limits(config);
        let asks = rng.u8(0..4) == 0;
        let trays = if may_use_trays(&limits, asks) {
            // Few, so that slots take them from each other.
            rng.usize(0..=3)
        } else {
            0
        };
        Self {
            now,
            trays: (0..trays).map(|_| None).collect(),
            ledger: Ledger::new(limits, "pool".into(), asks, trays, rng.u64(..), now),
            rng,
            leases: Vec::new(),
            callers: Vec::new(),
            watchers: Vec::new(),
            alarms: BTreeSet::new(),
            begun: Vec::new(),
            inside: BTreeSet::new(),
            permits: 0,
            cap: max_size,
            promised: max_size,
            joined: 0,
            minted: 0,
            closed: false,
            ends: Ends::default(),
            before: Status::default(),
        }
    }

    fn states(&self) -> Vec<(State, Moment)> {
        let slots = self.ledger.slots.iter();
        slots.map(|slot| (slot.state, slot.since)).collect()
    }

    fn step(&mut self) {
        self.alarm();
        let dice = self.rng.u32(0..1000);
        if !matches!(dice, 0..290 | 460..470 | 480..620 | 635..760) {
            self.clear_trays();
        }
        match dice {
            0..60 => self.take_from_tray(),
            60..250 => {
                let deadline = self.patience();
                self.request(deadline);
            }
            250..290 => self.try_request(),
            290..420 => self.with_caller(Self::poll),
            420..460 => self.with_caller(Self::withdraw),
            460..470 => self.reserve(),
            470..477 => self.watch(),
            477..480 => self.warm(),
            480..620 => self.give_back(),
            620..635 => self.detach(),
            635..760 => self.begin_work(),
            760..875 => self.finish_work(),
            875..880 => self.change_upkeep(),
            880..920 => self.upkeep(),
            920..930 => self.resize(),
            930..940 => {
                let over = Duration::from_secs(self.rng.u64(0..4));
                self.call(|ledger, now, orders| ledger.invalidate(over, now, orders));
            }
            940..945 => self.ledger.suspend(),
            945..955 => self.call(Ledger::resume),
            955..970 => self.change_breaker(),
            970..975 => self.ledger.pause(),
            975..980 => self.call(Ledger::unpause),
            980..984 => {
                let mut orders = Orders::default();
                self.ledger.call_helpers(&mut orders);
                orders.wake_all();
            }
            984..990 => self.retain(),
            990..999 => self.now += Duration::from_millis(self.rng.u64(0..4_000)),
            _ => self.close(),
        }
        self.now += Duration::from_millis(self.rng.u64(0..200));
    }

    /// Makes one call to the ledger, and carries out its orders.
    pub(super) fn call<T>(
        &mut self,
        entry: impl FnOnce(&mut Ledger<Token>, Moment, &mut Orders<Token>) -> T,
    ) -> T {
        let mut orders = Orders::default();
        let answer = entry(&mut self.ledger, self.now, &mut orders);
        self.carry_out(orders);
        answer
    }

    pub(super) fn carry_out(&mut self, mut orders: Orders<Token>) {
        assert_eq!(
            orders.owed(),
            !self.ledger.owed.is_empty(),
            "the orders do not mention the work"
        );
        if let Some(at) = orders.alarm() {
            assert_eq!(self.ledger.alarm_at, Some(at));
            self.alarms.insert(at);
        }
        orders.wake_all();
    }

    pub(super) fn lent(&mut self, grant: Token, tray: Option<TrayNo>) {
        assert!(!self.closed, "I6: lent after the pool was closed");
        assert!(
            self.inside.remove(&grant),
            "I4: lent a resource that the ledger did not have"
        );
        self.leases.push(Lent {
            slot: grant.slot,
            token: grant,
            tray,
        });
    }

    /// The caller that was lent a resource just now inspects it. Returns whether it must not be
    /// lent: it is dead, or its runtime is gone, and it is given back.
    pub(super) fn refuses_lease(&mut self) -> bool {
        let fault = match self.rng.u8(0..16) {
            0 | 1 => Condition::Dead,
            2 => Condition::Stranded,
            _ => return false,
        };
        let lent = self.leases.pop().expect("it was lent just now");
        self.come_back(lent, fault);
        true
    }

    fn give_back(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let nth = self.rng.usize(0..self.leases.len());
        let lent = self.leases.swap_remove(nth);
        let condition = match self.rng.u8(0..10) {
            0 => Condition::Broken,
            1 => Condition::Discarded,
            2 | 3 => Condition::Dirty { clean: true },
            _ => Condition::Good,
        };
        if condition != Condition::Good || !self.lay_back(&lent) {
            self.come_back(lent, condition);
        }
    }

    /// Gives a resource to the ledger.
    pub(super) fn come_back(&mut self, lent: Lent, condition: Condition) {
        if matches!(condition, Condition::Broken | Condition::Dead) {
            self.clear_trays();
        }
        self.take_off(&lent);
        self.inside.insert(lent.token);
        let manner = [Manner::Dropped, Manner::Awaited][self.rng.usize(0..2)];
        let Lent { slot, token, .. } = lent;
        let returned = self.call(|ledger, now, orders| {
            ledger.give_back(slot, token, condition, manner, now, orders)
        });
        if let Some(work) = returned.work {
            self.begin(*work);
        }
    }

    fn detach(&mut self) {
        if let Some(lent) = self.leases.pop() {
            if lent.slot % 2 == 0 {
                self.call(|ledger, now, orders| ledger.keep(lent.slot, now, orders));
            }
            self.call(|ledger, now, orders| ledger.detach(lent.slot, now, orders));
        }
    }
}
