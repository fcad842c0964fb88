//! Random histories of the ledger. After every step its invariants are checked, and the world outside (who holds what, who waits, who works)
//! is kept here, so that both halves of each equation are held by different hands.

use std::collections::BTreeSet;
use std::env;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};

mod alarm;
mod aside;
mod calls;
mod clock;
mod herd;
mod mail;
mod ring;
mod seed;
mod trays;
mod work;

use super::way_in::Joined;
use super::*;
use crate::breaker::BreakerState;
use crate::config::{Config, IdleOrder, Nested, OnOpenError};
use crate::status::Status;
use seed::Seed;

/// Miri takes its time, and sees in few what it can see at all.
const HISTORIES: u64 = if cfg!(miri) { 4 } else { 10_000 };
const STEPS: usize = 80;

#[test]
fn every_invariant_holds_after_every_step_of_ten_thousand_histories() {
    for seed in seeds() {
        let _told = Seed(seed);
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
            world.check();
        }
        world.recover();
        world.end();
    }
}

/// The same every time; `CENOTE_HISTORIES` of them, others every time; or the one in `CENOTE_SEED`.
fn seeds() -> Range<u64> {
    let told = |variable| {
        let value = env::var(variable).ok()?;
        Some(value.parse().expect("it is a number"))
    };
    if let Some(seed) = told("CENOTE_SEED") {
        return seed..seed + 1;
    }
    let Some(histories) = told("CENOTE_HISTORIES") else {
        return 0..HISTORIES;
    };
    let start = u64::from(fastrand::u32(..)) << 31;
    println!("seeds from {start}");
    start..start + histories
}

#[test]
fn every_edge_of_the_state_machine_is_walked_and_no_other_is_allowed() {
    use State::{Aside, Checking, Cleaning, Closing, Idle, Leased, Opening, Vacant};
    let all = [
        Vacant, Opening, Idle, Leased, Aside, Checking, Cleaning, Closing,
    ];

    let edges = all
        .iter()
        .flat_map(|from| all.iter().filter(|to| from.may_become(**to)))
        .count();

    assert_eq!(edges, 1 + 4 + 3 + 6 + 2 + 4 + 4 + 1);
    assert!(
        !Vacant.may_become(Leased) && !Closing.may_become(Idle) && !Cleaning.may_become(Checking)
    );
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody with a ticket.
struct Caller {
    ticket: Ticket,
    mailbox: MailboxRef<Token>,
    joined: u64,
    woken: Arc<Woken>,
    /// When its time is over, if the alarm is to wake it.
    until: Option<Moment>,
    /// It was woken to look again, and has not looked yet.
    due: Cell<bool>,
}

impl Caller {
    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }
}

/// The resource is a number that exists once.
type Token = u64;

struct World {
    rng: Rng,
    now: Moment,
    ledger: Ledger<Token>,
    leases: Vec<(SlotNo, Token)>,
    trays: Vec<Option<trays::Tray>>,
    callers: Vec<Caller>,
    jobs: Vec<Work<Token>>,
    /// What the ledger has in its own hands: idle, granted, or owed work.
    inside: BTreeSet<Token>,
    /// How many may exist: `max_size`, or what was there when it shrank.
    cap: usize,
    joined: u64,
    minted: u64,
    closed: bool,
    before: Status,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let now = crate::rt::now();
        let max_size = rng.usize(1..=5);
        let config = Config {
            max_size,
            min_size: rng.usize(0..=max_size),
            min_idle: rng.usize(0..=max_size),
            max_opening: rng.usize(1..=3),
            max_uses: rng.bool().then_some(3),
            max_waiters: rng.bool().then_some(6),
            probes: rng.usize(1..=2),
            heartbeat_interval: rng.bool().then_some(Duration::from_secs(3)),
            idle_timeout: rng.bool().then_some(Duration::from_secs(8)),
            max_lifetime: rng.bool().then_some(Duration::from_secs(20)),
            check_after_idle: [None, Some(Duration::ZERO), Some(Duration::from_secs(2))]
                [rng.usize(0..3)],
            leak_after: rng.bool().then_some(Duration::from_secs(5)),
            on_open_error: if rng.bool() {
                OnOpenError::Fail
            } else {
                OnOpenError::Retry
            },
            idle_order: if rng.bool() {
                IdleOrder::Hot
            } else {
                IdleOrder::Oldest
            },
            nested: [Nested::Allow, Nested::Report, Nested::Deny][rng.usize(0..3)],
            ..Config::default()
        };
        let limits = Arc::new(Limits::check(config).expect("these settings are valid"));
        let asks = rng.u8(0..4) == 0;
        let trays = if may_be_set_aside(&limits, asks) {
            rng.usize(0..=5)
        } else {
            0
        };
        Self {
            now,
            trays: (0..trays).map(|_| None).collect(),
            ledger: Ledger::new(limits, asks, trays, rng.u64(..), now),
            rng,
            leases: Vec::new(),
            callers: Vec::new(),
            jobs: Vec::new(),
            inside: BTreeSet::new(),
            cap: max_size,
            joined: 0,
            minted: 0,
            closed: false,
            before: Status::default(),
        }
    }

    fn step(&mut self) {
        self.alarm();
        let dice = self.rng.u32(0..1000);
        if !matches!(dice, 0..290 | 480..620 | 635..760) {
            self.fetch();
        }
        match dice {
            0..60 => self.take_from_tray(),
            60..250 => self.request(),
            250..290 => self.try_request(),
            290..400 => self.with_caller(Self::claim),
            400..440 => self.with_caller(Self::withdraw),
            440..480 => self.with_caller(Self::time_out),
            480..620 => self.give_back(),
            620..635 => self.detach(),
            635..760 => self.take_work(),
            760..880 => self.finish_work(),
            880..920 => self.upkeep(),
            920..930 => self.resize(),
            930..940 => {
                let over = Duration::from_secs(self.rng.u64(0..4));
                let orders = self.ledger.invalidate(over, self.now);
                self.obey(orders);
            }
            940..945 => self.ledger.suspend(),
            945..955 => {
                let orders = self.ledger.resume(self.now);
                self.obey(orders);
            }
            955..970 => {
                use BreakerState::{Active, Inactive, Recovering};
                let next = [Active, Active, Inactive, Recovering][self.rng.usize(0..4)];
                let (_, orders) = self.ledger.set_breaker(None, next, self.now);
                self.obey(orders);
            }
            970..975 => self.ledger.pause(),
            975..982 => {
                let orders = self.ledger.unpause(self.now);
                self.obey(orders);
            }
            982..990 => self.look(),
            990..999 => self.now += Duration::from_millis(self.rng.u64(0..4_000)),
            _ => self.close(),
        }
        self.now += Duration::from_millis(self.rng.u64(0..200));
    }

    fn asker(&mut self) -> Asker {
        Asker {
            site: Location::caller(),
            owner: None,
        }
    }

    fn request(&mut self) {
        let woken = Arc::new(Woken::default());
        let asker = self.asker();
        let until = self.patience();
        self.fetch_to_ask();
        let mut waker = Some(Waker::from(Arc::clone(&woken)));
        let mut orders = Orders::default();
        let joined = self.ledger.join_line(asker, &mut waker, until, self.now);
        let answer = match joined {
            Some(Joined {
                ticket, mailbox, ..
            }) => {
                let left = (self.ledger.owed.is_empty(), self.ledger.waste.is_empty());
                assert_eq!(left, (true, true), "owed work was kept secret");
                Answer::Wait { ticket, mailbox }
            }
            None => {
                let answer = self
                    .ledger
                    .request(asker, &mut waker, until, self.now, &mut orders);
                self.obey(orders.delivered());
                answer
            }
        };
        match answer {
            Answer::Granted(grant) => {
                assert!(
                    !self.callers.iter().any(|caller| !caller.is_woken()),
                    "barged past somebody who waits"
                );
                self.lent(grant);
            }
            Answer::Wait { ticket, mailbox } => {
                self.joined += 1;
                self.callers.push(Caller {
                    ticket,
                    mailbox,
                    joined: self.joined,
                    woken,
                    until,
                    due: Cell::new(false),
                });
            }
            Answer::Refused(Refusal::Closed) => assert!(self.closed),
            Answer::Refused(_) => {}
        }
    }

    fn try_request(&mut self) {
        let asker = self.asker();
        self.fetch_to_ask();
        let (answer, orders) = self.ledger.try_request(asker, self.now);
        self.obey(orders);
        if let Ok(Some(grant)) = answer {
            assert!(
                !self.callers.iter().any(|caller| !caller.is_woken()),
                "a try barged past somebody who waits"
            );
            self.lent(grant);
        }
    }

    fn with_caller(&mut self, act: fn(&mut Self, Caller)) {
        if !self.callers.is_empty() {
            let nth = self.rng.usize(0..self.callers.len());
            let caller = self.callers.remove(nth);
            act(self, caller);
        }
    }

    fn heard(&mut self, claim: Claim<Token>) {
        match claim {
            Ok(grant) => self.lent(grant),
            Err(Refusal::Closed) => assert!(self.closed),
            Err(_) => {}
        }
    }

    fn lent(&mut self, grant: Grant<Token>) {
        assert!(!self.closed, "I6: lent after it was closed");
        assert!(
            self.inside.remove(&grant.resource),
            "I4: lent what it did not have"
        );
        self.leases.push((grant.slot, grant.resource));
        if self.ledger.is_aside(grant.slot) {
            self.open_tray(grant.slot, grant.uses);
        }
    }

    fn withdraw(&mut self, caller: Caller) {
        let orders = self.ledger.withdraw(caller.ticket, self.now);
        self.obey(orders);
    }

    fn give_back(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let (slot, token) = self
            .leases
            .swap_remove(self.rng.usize(0..self.leases.len()));
        let condition = match self.rng.u8(0..10) {
            0 => Condition::Broken,
            1 => Condition::Discarded,
            2 | 3 => Condition::Dirty { clean: true },
            _ => Condition::Good,
        };
        let manner = if self.rng.bool() {
            Manner::Dropped
        } else {
            Manner::Polite
        };
        if condition == Condition::Good && self.lay_back(slot, token) {
            return;
        }
        self.fetch_one(slot);
        self.inside.insert(token);
        let (returned, orders) = self
            .ledger
            .returned(slot, token, condition, manner, self.now);
        self.obey(orders);
        if let Some(work) = returned.work {
            self.take_up(work);
        }
    }

    fn detach(&mut self) {
        if let Some((slot, _)) = self.leases.pop() {
            let orders = self.ledger.detach(slot, self.now);
            self.obey(orders);
        }
    }

    fn take_work(&mut self) {
        if let Some(work) = self.ledger.next_work() {
            self.take_up(work);
        }
    }

    fn take_up(&mut self, work: Work<Token>) {
        if let Work::Vet { resource, .. }
        | Work::Clean { resource, .. }
        | Work::Close { resource, .. } = &work
        {
            assert!(
                self.inside.remove(resource),
                "I4: work on what it did not have"
            );
        }
        self.jobs.push(work);
    }
}
