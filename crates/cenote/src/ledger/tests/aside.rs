//! What is set aside, what never is, and when it must be fetched.

use super::*;
use crate::ledger::may_be_set_aside;

const SECOND: Duration = Duration::from_secs(1);

fn limits(config: Config) -> Arc<Limits> {
    Arc::new(Limits::check(config).expect("these settings are valid"))
}

/// A ledger with idle resources, whose upkeep sleeps.
struct Shelf {
    ledger: Ledger<Token>,
    now: Moment,
}

impl Shelf {
    /// With as many trays as slots. Upkeep has nothing to wake for but its interval, unless `config` says so.
    fn new(config: Config, idle: usize) -> Self {
        let trays = config.max_size;
        Self::with_trays(config, trays, idle)
    }

    fn with_trays(config: Config, trays: usize, idle: usize) -> Self {
        let now = crate::rt::now();
        let config = Config {
            upkeep_interval: 30 * SECOND,
            lifetime_jitter: 0.0,
            ..config
        };
        let mut shelf = Self {
            ledger: Ledger::new(limits(config), false, trays, 0, now),
            now,
        };
        let tickets: Vec<_> = (0..idle).map(|_| shelf.wait()).collect();
        shelf.open();
        let slots = tickets.into_iter().map(|ticket| shelf.claim(ticket));
        for slot in slots.collect::<Vec<_>>() {
            shelf.give_back(slot);
        }
        let _ = shelf.ledger.upkeep(now);
        shelf
    }

    fn wait(&mut self) -> Ticket {
        match self.ledger.asked(asker(), Waker::noop(), self.now).0 {
            Answer::Wait { ticket, .. } => ticket,
            answer => panic!("it was to wait: {answer:?}"),
        }
    }

    fn open(&mut self) {
        while let Some(work) = self.ledger.next_work() {
            let Work::Open { slot } = work else {
                panic!("{work:?} is owed");
            };
            let _ = self.ledger.opened(slot, 0, None, self.now).1.delivered();
        }
    }

    fn claim(&mut self, ticket: Ticket) -> SlotNo {
        match self.ledger.claimed(ticket, Waker::noop(), self.now).0 {
            Poll::Ready(Ok(grant)) => grant.slot,
            claim => panic!("it was to be lent: {claim:?}"),
        }
    }

    fn give_back(&mut self, slot: SlotNo) {
        let (good, dropped) = (Condition::Good, Manner::Dropped);
        let _ = self.ledger.returned(slot, 0, good, dropped, self.now);
    }

    fn lend(&mut self) -> (Grant<Token>, Orders<Token>) {
        match self.ledger.try_request(asker(), self.now) {
            (Ok(Some(grant)), orders) => (grant, orders),
            (answer, _) => panic!("it was to be lent: {answer:?}"),
        }
    }

    /// Lends one. Is it set aside?
    fn sets_aside(&mut self) -> bool {
        let slot = self.lend().0.slot;
        let is_aside = self.ledger.is_aside(slot);
        assert_eq!(is_aside, self.ledger.next_aside().is_some());
        is_aside
    }

    fn must_fetch(&self) -> bool {
        self.ledger.must_fetch(self.now)
    }
}

fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

fn of_size(max_size: usize) -> Config {
    Config {
        max_size,
        max_lifetime: None,
        idle_timeout: None,
        leak_after: None,
        check_after_idle: None,
        ..Config::default()
    }
}

#[test]
fn a_pool_that_looks_at_every_trip_sets_nothing_aside() {
    let may = |config, hooked| may_be_set_aside(&limits(config), hooked);
    let every_trip_is_looked_at = [
        Config {
            check_on_return: true,
            ..of_size(2)
        },
        Config {
            check_after_idle: Some(Duration::ZERO),
            ..of_size(2)
        },
        Config {
            idle_order: IdleOrder::Oldest,
            ..of_size(2)
        },
        Config {
            nested: Nested::Deny,
            ..of_size(2)
        },
    ];

    assert!(may(of_size(2), false));
    assert!(!may(of_size(2), true));
    for config in every_trip_is_looked_at {
        assert!(!may(config.clone(), false), "{config:?}");
    }
    for nested in [Nested::Allow, Nested::Report] {
        let config = Config {
            nested,
            check_after_idle: Some(SECOND),
            ..of_size(2)
        };
        assert!(may(config, false));
    }
}

#[test]
fn what_has_no_tray_is_not_set_aside() {
    let mut shelf = Shelf::with_trays(of_size(2), 1, 2);

    let (first, second) = (shelf.lend().0, shelf.lend().0);

    assert_eq!((first.slot, shelf.ledger.is_aside(1)), (1, false));
    assert_eq!((second.slot, shelf.ledger.is_aside(0)), (0, true));
}

#[test]
fn nothing_is_set_aside_while_spare_ones_would_have_to_be_opened() {
    let spare = |max_size, min_idle| {
        let config = Config {
            min_idle,
            ..of_size(max_size)
        };
        Shelf::new(config, 2).sets_aside()
    };

    assert!(spare(2, 0), "none is asked for");
    assert!(spare(3, 0), "none is asked for, and there is room");
    assert!(spare(2, 1), "there is no room");
    assert!(!spare(4, 1));
}

#[test]
fn what_has_to_go_soon_is_not_set_aside() {
    let mut shelf = Shelf::new(of_size(2), 2);

    let _ = shelf.ledger.invalidate(60 * SECOND, shelf.now);
    shelf.now += SECOND;

    assert!(!shelf.sets_aside());
}

#[test]
fn a_probe_is_not_set_aside() {
    let mut shelf = Shelf::new(of_size(2), 2);

    for state in [BreakerState::Inactive, BreakerState::Recovering] {
        let _ = shelf.ledger.set_breaker(None, state, shelf.now);
    }

    assert!(!shelf.sets_aside());
}

#[test]
fn what_is_set_aside_wakes_upkeep_only_for_a_date_before_its_next() {
    let rings = |idle_timeout, heartbeat_interval| {
        let config = Config {
            // Until it comes back nobody counts on its dates.
            min_size: 1,
            idle_timeout,
            heartbeat_interval,
            ..of_size(2)
        };
        Shelf::new(config, 1).lend().1.ring
    };

    assert!(!rings(Some(60 * SECOND), None));
    assert!(!rings(None, Some(60 * SECOND)));
    assert!(rings(Some(10 * SECOND), None));
}

#[test]
fn what_is_set_aside_is_fetched_only_if_nothing_fit_is_on_the_shelf() {
    let config = Config {
        check_after_idle: Some(5 * SECOND),
        ..of_size(2)
    };
    let mut shelf = Shelf::new(config, 2);
    let opened_at = shelf.now;
    assert!(!shelf.must_fetch(), "nothing is set aside");

    let _ = shelf.lend();
    assert!(!shelf.must_fetch(), "the other is fit");
    shelf.now = opened_at + 5 * SECOND;
    assert!(shelf.must_fetch(), "the other must be checked");
    shelf.now = opened_at;
    let _ = shelf.lend();
    assert!(shelf.must_fetch(), "nothing is on the shelf");
    assert!(!Shelf::new(of_size(2), 0).must_fetch(), "nothing is there");
}

#[test]
fn what_is_set_aside_is_fetched_if_all_on_the_shelf_must_go() {
    let config = Config {
        max_lifetime: Some(60 * SECOND),
        ..of_size(2)
    };
    let mut shelf = Shelf::new(config, 2);
    let _ = shelf.lend();

    shelf.now += 60 * SECOND;

    assert!(shelf.must_fetch());
}

#[test]
fn what_expires_soon_in_a_full_pool_does_not_wake_upkeep_on_every_trip() {
    let config = Config {
        max_lifetime: Some(60 * SECOND),
        ..of_size(1)
    };
    let mut shelf = Shelf::new(config, 1);
    shelf.now += 56 * SECOND;
    let _ = shelf.ledger.upkeep(shelf.now);

    let (_, orders) = shelf.lend();

    assert!(!orders.ring, "there is no room for a successor");
}
