//! When the upkeep task is woken: only for a job that it can do before it would wake by itself.

use super::*;

/// A pool with so many leases. Upkeep sleeps.
fn lent(config: Config, leases: usize) -> (Rig, Vec<SlotNo>) {
    let mut rig = Rig::new(config);
    let leases = (0..leases).map(|_| rig.lend_new().slot).collect();
    sleep(&mut rig);
    (rig, leases)
}

/// Upkeep does the jobs that are due, and sleeps.
fn sleep(rig: &mut Rig) {
    rig.upkeep();
    rig.open();
    rig.upkeep();
}

#[test]
fn a_return_wakes_upkeep_only_for_a_job_before_its_next_round() {
    let rings = |idle_timeout, heartbeat_interval| {
        let config = Config {
            idle_timeout,
            heartbeat_interval,
            ..of_size(10)
        };
        let (mut rig, leases) = lent(config, 2);
        [0, 1].map(|nth| {
            rig.give_back(leases[nth]);
            rig.orders.rings()
        })
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
            ..of_size(10)
        };
        let (mut rig, leases) = lent(config, 1);
        rig.give_back(leases[0]);
        sleep(&mut rig);
        rig.lend();
        rig.orders.rings()
    };

    assert!(!rings(60 * SECOND));
    assert!(rings(10 * SECOND));
}

#[test]
fn a_lease_wakes_upkeep_to_open_a_spare_resource_only_if_there_is_room() {
    let rings = |max_size| {
        let config = Config {
            min_idle: 1,
            ..of_size(max_size)
        };
        let (mut rig, _) = lent(config, 1);
        rig.lend();
        rig.orders.rings()
    };

    assert!(!rings(2), "one is out and one is spare");
    assert!(rings(3));
}

#[test]
fn a_free_slot_wakes_upkeep_only_if_it_is_to_be_refilled_now() {
    let rings = |min_size, prepare: fn(&mut Rig)| {
        let config = Config {
            min_size,
            ..of_size(10)
        };
        let (mut rig, leases) = lent(config, 1);
        prepare(&mut rig);
        rig.detach(leases[0]);
        rig.orders.rings()
    };

    assert!(rings(1, |_| {}));
    assert!(!rings(0, |_| {}));
    assert!(!rings(1, |rig| rig.ledger.pause()));
    assert!(!rings(1, |rig| rig.ledger.suspend()));
}

/// While a waiter is queued, upkeep opens no successor of a resource that expires soon.
#[test]
fn the_last_waiter_wakes_upkeep_only_if_upkeep_put_something_off_for_the_queue() {
    type Leave = fn(&mut Rig, &Waiter, SlotNo);
    let leaves: [Leave; 4] = [
        |rig, waiter, _| rig.withdraw(waiter),
        |rig, _, lent| rig.give_back(lent),
        |rig, waiter, _| {
            rig.now += SECOND / 2;
            rig.look(waiter);
        },
        |rig, waiter, _| {
            rig.alarm(waiter.alarm.expect("it is the first"));
        },
    ];
    for leave in leaves {
        let rings = |after: Duration| {
            let mut rig = Rig::new(Config {
                max_lifetime: Some(100 * SECOND),
                upkeep_interval: SECOND,
                ..of_size(1)
            });
            let lent = rig.lend_new().slot;
            rig.now += after;
            let waiter = rig.wait(Some(SECOND / 2));
            sleep(&mut rig);
            leave(&mut rig, &waiter, lent);
            rig.orders.rings()
        };

        assert!(!rings(10 * SECOND), "nothing was due");
        assert!(rings(96 * SECOND));
    }
}

#[test]
fn an_open_wakes_upkeep_for_the_next_refill() {
    let mut rig = Rig::new(Config {
        min_size: 2,
        max_opening: 1,
        ..of_size(2)
    });
    rig.upkeep();

    assert_eq!(rig.open(), 1);
    assert!(rig.orders.rings(), "one is missing");
    rig.upkeep();
    assert_eq!(rig.open(), 1);
    assert!(!rig.orders.rings());
}

#[test]
fn a_check_wakes_upkeep_for_the_next_heartbeat() {
    let mut rig = Rig::new(Config {
        heartbeat_interval: Some(10 * SECOND),
        upkeep_interval: 5 * SECOND,
        ..of_size(4)
    });
    rig.stock(4);
    rig.now += 10 * SECOND;
    rig.upkeep();
    let checks: Vec<_> = rig.owed().iter().map(|work| work.slot).collect();
    assert_eq!(checks.len(), 2, "no more at once");

    rig.judged(checks[0], Outcome::Fit);

    assert!(rig.orders.rings());
    assert_eq!(rig.ledger.wakes_at, Some(rig.now));
}

/// A pool with a waiter although its only resource is idle, so long after its last heartbeat.
fn queued(after: Duration) -> (Rig, Waiter) {
    let mut rig = Rig::new(Config {
        heartbeat_interval: Some(10 * SECOND),
        ..of_size(1)
    });
    rig.stock(1);
    rig.ledger.suspend();
    rig.now += after;
    let waiter = rig.wait(None);
    (rig, waiter)
}

#[test]
fn upkeep_sleeps_on_while_a_waiter_keeps_it_from_a_heartbeat_that_is_due() {
    for after in [10 * SECOND, 11 * SECOND] {
        let (mut rig, _waiter) = queued(after);

        let next = rig.upkeep().next;

        assert_eq!(next, Some(rig.now + 30 * SECOND), "{after:?}");
    }
}

#[test]
fn the_last_waiter_wakes_upkeep_only_if_a_heartbeat_was_put_off() {
    for (after, rings) in [(9 * SECOND, false), (10 * SECOND, true)] {
        let (mut rig, waiter) = queued(after);
        rig.upkeep();

        rig.withdraw(&waiter);

        assert_eq!(rig.orders.rings(), rings, "{after:?}");
    }
}

#[test]
fn upkeep_sleeps_until_the_proof_that_the_backend_is_back_is_held_up() {
    let mut rig = Rig::new(Config {
        self_probe: true,
        ..of_size(2)
    });
    rig.stock(1);
    rig.recover();
    assert_eq!(rig.begin_opens().len(), 1, "the proof");

    let next = rig.upkeep().next;

    assert_eq!(next, Some(rig.now + HELD_UP_AFTER));
}

#[test]
fn the_last_waiter_wakes_upkeep_only_if_a_refill_was_put_off() {
    for (min_size, rings) in [(2, false), (3, true)] {
        let mut rig = Rig::new(Config {
            min_size,
            ..of_size(3)
        });
        rig.lend_new();
        let waiter = rig.wait(None);
        assert_eq!(rig.begin_opens().len(), 1, "the second one");
        rig.upkeep();

        rig.withdraw(&waiter);

        assert_eq!(rig.orders.rings(), rings, "{min_size}");
    }
}
