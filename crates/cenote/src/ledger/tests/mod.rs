//! Random histories of the ledger. After every step its invariants are checked. The world outside
//! (who holds what, who waits, who works) is kept here, so that both halves of each equation are
//! held by different hands.

use std::collections::BTreeSet;
use std::env;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

mod alarm;
mod calls;
mod clock;
mod crowds;
mod delivery;
mod growth;
mod health;
mod herd;
mod memory;
mod on_trays;
mod oracle;
mod passed_over;
mod proof;
mod replace;
mod ring;
mod seed;
mod trays;
mod visible;
mod work;

use super::*;
use crate::breaker::BreakerState;
use crate::config::{Config, IdleOrder, Nested, OnOpenError};
use crate::status::{Reason, Status};
use calls::{Rig, SECOND, Waiter, Woken, asker, limits, of_size};
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
    use State::{Checking, Cleaning, Closing, Idle, Leased, OnTray, Opening, Vacant};
    let all = [
        Vacant, Opening, Idle, Leased, OnTray, Checking, Cleaning, Closing,
    ];

    let edges = all
        .iter()
        .flat_map(|from| all.iter().filter(|to| from.may_become(**to)))
        .count();

    assert_eq!(all.len(), State::COUNT);
    assert_eq!(edges, 1 + 4 + 3 + 6 + 2 + 4 + 4 + 1);
    assert!(
        !Vacant.may_become(Leased) && !Closing.may_become(Idle) && !Cleaning.may_become(Checking)
    );
}

/// A caller with a ticket.
struct Caller {
    ticket: Ticket,
    mailbox: MailboxRef<Token>,
    /// Its place among all callers that ever waited.
    joined: i64,
    since: Moment,
    deadline: Moment,
    /// The waker of its last poll.
    woken: Arc<Woken>,
    /// It was granted a dead resource, and waits again.
    again: bool,
}

/// A caller with a resource.
struct Lent {
    slot: SlotNo,
    token: Token,
    tray: Option<TrayNo>,
}

/// The resource is a number that exists once.
type Token = u64;

struct World {
    rng: Rng,
    now: Moment,
    ledger: Ledger<Token>,
    leases: Vec<Lent>,
    trays: Vec<Option<trays::Tray>>,
    /// In the order in which they are to be served.
    callers: Vec<Caller>,
    watchers: Vec<(Option<WatchNo>, Arc<Woken>)>,
    /// The moments for which the alarm is set, as the shell was told.
    alarms: BTreeSet<Moment>,
    jobs: Vec<Work<Token>>,
    /// What the ledger has in its own hands: idle, granted, or owed work.
    inside: BTreeSet<Token>,
    /// How many may exist: `max_size`, or what was there when it shrank.
    cap: usize,
    joined: i64,
    minted: u64,
    closed: bool,
    ends: herd::Ends,
    before: Status,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let now = crate::rt::now();
        // Sometimes more than are passed over on the shelf.
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
            jobs: Vec::new(),
            inside: BTreeSet::new(),
            cap: max_size,
            joined: 0,
            minted: 0,
            closed: false,
            ends: herd::Ends::default(),
            before: Status::default(),
        }
    }

    fn step(&mut self) {
        self.alarm();
        let dice = self.rng.u32(0..1000);
        if !matches!(dice, 0..290 | 480..620 | 635..760) {
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
            420..470 => self.with_caller(Self::withdraw),
            470..477 => self.watch(),
            477..480 => self.warm(),
            480..620 => self.give_back(),
            620..635 => self.detach(),
            635..760 => self.take_work(),
            760..875 => self.finish_work(),
            875..880 => self.change_upkeep(),
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
            955..970 => self.change_breaker(),
            970..975 => self.ledger.pause(),
            975..980 => {
                let orders = self.ledger.unpause(self.now);
                self.obey(orders);
            }
            980..984 => {
                let mut orders = self.ledger.call_helpers();
                orders.wake_all();
            }
            984..990 => self.retain(),
            990..999 => self.now += Duration::from_millis(self.rng.u64(0..4_000)),
            _ => self.close(),
        }
        self.now += Duration::from_millis(self.rng.u64(0..200));
    }

    fn request(&mut self, deadline: Moment) {
        let asker = asker();
        self.clear_trays_to_ask();
        self.fork();
        let woken = Arc::new(Woken::default());
        let mut waker = Some(Waker::from(Arc::clone(&woken)));
        let (now, mut orders) = (self.now, Orders::default());
        let joined = self
            .ledger
            .join_line(asker, &mut waker, deadline, now, &mut orders);
        if let Some((ticket, mailbox)) = joined {
            self.joins(ticket, mailbox, woken, deadline);
            return self.obey(orders);
        }
        let answer = self
            .ledger
            .request(asker, &mut waker, deadline, None, now, &mut orders);
        match answer {
            Answer::Granted(grant) => {
                assert!(self.is_line_empty(), "barged past a waiter");
                self.lent_on_tray(grant, &mut orders);
            }
            Answer::Wait { ticket, mailbox } => self.joins(ticket, mailbox, woken, deadline),
            Answer::Refused(Refusal::Closed) => assert!(self.closed),
            Answer::Refused(_) => {}
        }
        self.obey(orders);
    }

    fn try_request(&mut self) {
        self.clear_trays_to_ask();
        let mut orders = Orders::default();
        let answer = self.ledger.try_request(asker(), self.now, &mut orders);
        if let Ok(Some(grant)) = answer {
            assert!(self.is_line_empty(), "a try barged past a waiter");
            self.lent_on_tray(grant, &mut orders);
        }
        self.obey(orders);
    }

    fn is_line_empty(&mut self) -> bool {
        let Self {
            ledger, callers, ..
        } = self;
        let mut tickets = callers.iter().map(|caller| caller.ticket);
        !tickets.any(|ticket| ledger.waiters.waiter(ticket).is_some())
    }

    fn lent(&mut self, grant: Grant<Token>, tray: Option<TrayNo>) {
        assert!(!self.closed, "I6: lent after it was closed");
        let Grant { slot, resource, .. } = grant;
        assert!(
            self.inside.remove(&resource),
            "I4: lent what it did not have"
        );
        self.leases.push(Lent {
            slot,
            token: resource,
            tray,
        });
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
    fn come_back(&mut self, lent: Lent, condition: Condition) {
        if matches!(condition, Condition::Broken | Condition::Dead) {
            self.clear_trays();
        }
        self.take_off(&lent);
        self.inside.insert(lent.token);
        let manner = if self.rng.bool() {
            Manner::Dropped
        } else {
            Manner::Polite
        };
        let mut orders = Orders::default();
        let Lent { slot, token, .. } = lent;
        let returned = self
            .ledger
            .give_back(slot, token, condition, manner, self.now, &mut orders);
        self.obey(orders);
        if let Some(work) = returned.work {
            self.take_up(work);
        }
    }

    fn detach(&mut self) {
        if let Some(lent) = self.leases.pop() {
            let orders = self.ledger.detach(lent.slot, self.now);
            self.obey(orders);
        }
    }
}
