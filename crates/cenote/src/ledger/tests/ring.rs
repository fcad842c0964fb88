//! When the upkeep task is woken: never for what it would wake for by itself, or can do nothing about.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A ledger with leases, whose upkeep sleeps.
struct Kept {
    ledger: Ledger<Token>,
    now: Moment,
    leases: Vec<SlotNo>,
}

impl Kept {
    /// Upkeep has nothing to wake for but its interval, unless `config` says so.
    fn new(config: Config, leases: usize) -> Self {
        let now = crate::rt::now();
        let config = Config {
            max_lifetime: None,
            upkeep_interval: 30 * SECOND,
            ..config
        };
        let limits = Arc::new(Limits::check(config).expect("these settings are valid"));
        let ledger = Ledger::new(limits, false, 0, 0, now);
        let mut kept = Self {
            ledger,
            now,
            leases: Vec::new(),
        };
        for _ in 0..leases {
            let ticket = kept.wait().0;
            kept.open();
            let (claim, _) = kept.ledger.claimed(ticket, Waker::noop(), now);
            let Poll::Ready(Ok(grant)) = claim else {
                panic!("it was to be lent");
            };
            kept.leases.push(grant.slot);
        }
        kept.sleep();
        kept
    }

    /// Opens what is owed.
    fn open(&mut self) {
        while let Some(work) = self.ledger.next_work() {
            let Work::Open { slot } = work else {
                panic!("{work:?} is owed");
            };
            let _ = self.ledger.opened(slot, 0, None, self.now).1.delivered();
        }
    }

    /// Does what is due, and sleeps.
    fn sleep(&mut self) {
        let _ = self.ledger.upkeep(self.now);
        self.open();
        let _ = self.ledger.upkeep(self.now);
    }

    fn wait(&mut self) -> (Ticket, Orders<Token>) {
        let asker = asker();
        match self.ledger.asked(asker, Waker::noop(), self.now) {
            (Answer::Wait { ticket, .. }, orders) => (ticket, orders),
            (answer, _) => panic!("it was to wait: {answer:?}"),
        }
    }

    /// Does this wake the upkeep task?
    fn rings(&mut self, act: impl FnOnce(&mut Self) -> Orders<Token>) -> bool {
        act(self).ring
    }

    fn give_back(&mut self) -> Orders<Token> {
        let slot = self.leases.pop().expect("one is out");
        let (good, dropped) = (Condition::Good, Manner::Dropped);
        self.ledger.returned(slot, 0, good, dropped, self.now).1
    }

    fn detach(&mut self) -> Orders<Token> {
        let slot = self.leases.pop().expect("one is out");
        self.ledger.detach(slot, self.now)
    }

    fn lend(&mut self) -> Orders<Token> {
        self.ledger.try_request(asker(), self.now).1
    }
}

fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

#[test]
fn a_return_wakes_upkeep_only_for_a_date_before_its_next() {
    let rings = |idle_timeout, heartbeat_interval| {
        let config = Config {
            idle_timeout,
            heartbeat_interval,
            ..Config::default()
        };
        let mut kept = Kept::new(config, 2);
        [kept.rings(Kept::give_back), kept.rings(Kept::give_back)]
    };

    assert_eq!(rings(Some(60 * SECOND), None), [false, false]);
    assert_eq!(rings(None, Some(60 * SECOND)), [false, false]);
    assert_eq!(rings(Some(10 * SECOND), None), [true, false]);
    assert_eq!(rings(None, Some(10 * SECOND)), [true, false]);
}

#[test]
fn a_lease_wakes_upkeep_only_if_it_may_leak_before_its_next_round() {
    let rings = |leak_after| {
        let config = Config {
            leak_after: Some(leak_after),
            ..Config::default()
        };
        let mut kept = Kept::new(config, 1);
        let _ = kept.give_back();
        kept.sleep();
        kept.rings(Kept::lend)
    };

    assert!(!rings(60 * SECOND));
    assert!(rings(10 * SECOND));
}

#[test]
fn a_lease_wakes_upkeep_for_a_spare_one_only_if_there_is_room() {
    let rings = |max_size| {
        let config = Config {
            max_size,
            min_idle: 1,
            leak_after: None,
            ..Config::default()
        };
        Kept::new(config, 1).rings(Kept::lend)
    };

    assert!(!rings(2), "one is out and one is spare");
    assert!(rings(3));
}

#[test]
fn a_free_slot_wakes_upkeep_only_if_it_is_to_be_refilled_now() {
    let kept = |min_size| {
        let config = Config {
            min_size,
            ..Config::default()
        };
        Kept::new(config, 1)
    };
    let mut paused = kept(1);
    paused.ledger.pause();
    let mut suspended = kept(1);
    suspended.ledger.suspend();

    assert!(kept(1).rings(Kept::detach));
    assert!(!kept(0).rings(Kept::detach));
    assert!(!paused.rings(Kept::detach));
    assert!(!suspended.rings(Kept::detach));
}

#[test]
fn the_last_in_line_wakes_upkeep_only_if_that_stepped_back_for_the_line() {
    let rings = |stepped_back| {
        let config = Config {
            max_size: 1,
            ..Config::default()
        };
        let mut kept = Kept::new(config, 1);
        let (ticket, _) = kept.wait();
        if stepped_back {
            kept.sleep();
        }
        kept.rings(|kept| kept.ledger.withdraw(ticket, kept.now))
    };

    assert!(!rings(false));
    assert!(rings(true));
}
