//! When the upkeep task is woken: never for what it would wake for by itself, or can do nothing
//! about.

use super::*;

/// So many leases are out, and upkeep sleeps.
fn lent(config: Config, leases: usize) -> (Rig, Vec<SlotNo>) {
    let mut rig = Rig::new(Config {
        max_lifetime: None,
        upkeep_interval: 30 * SECOND,
        ..config
    });
    let leases = (0..leases).map(|_| rig.lend_new().slot).collect();
    sleep(&mut rig);
    (rig, leases)
}

/// Upkeep does what is due, and sleeps.
fn sleep(rig: &mut Rig) {
    let _ = rig.ledger.upkeep(rig.now);
    rig.open();
    let _ = rig.ledger.upkeep(rig.now);
}

#[test]
fn a_return_wakes_upkeep_only_for_a_date_before_its_next() {
    let rings = |idle_timeout, heartbeat_interval| {
        let config = Config {
            idle_timeout,
            heartbeat_interval,
            ..Config::default()
        };
        let (mut rig, leases) = lent(config, 2);
        [0, 1].map(|nth| rig.give_back(leases[nth]).ring)
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
        let (mut rig, leases) = lent(config, 1);
        let _ = rig.give_back(leases[0]);
        sleep(&mut rig);
        rig.lend().1.ring
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
        lent(config, 1).0.lend().1.ring
    };

    assert!(!rings(2), "one is out and one is spare");
    assert!(rings(3));
}

#[test]
fn a_free_slot_wakes_upkeep_only_if_it_is_to_be_refilled_now() {
    let rings = |min_size, prepare: fn(&mut Rig)| {
        let config = Config {
            min_size,
            ..Config::default()
        };
        let (mut rig, leases) = lent(config, 1);
        prepare(&mut rig);
        rig.ledger.detach(leases[0], rig.now).ring
    };

    assert!(rings(1, |_| {}));
    assert!(!rings(0, |_| {}));
    assert!(!rings(1, |rig| rig.ledger.pause()));
    assert!(!rings(1, |rig| rig.ledger.suspend()));
}

/// While a waiter is queued, upkeep opens no successor of a resource that expires soon.
#[test]
fn the_last_waiter_wakes_upkeep_only_if_that_put_something_off_for_the_queue() {
    type Leave = fn(&mut Rig, &Waiter, SlotNo) -> Orders<Token>;
    let leaves: [Leave; 3] = [
        |rig, waiter, _| rig.withdraw(waiter),
        |rig, _, lent| rig.give_back(lent),
        |rig, waiter, _| {
            rig.now += SECOND / 2;
            rig.look(waiter).1
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
            leave(&mut rig, &waiter, lent).ring
        };

        assert!(!rings(10 * SECOND), "nothing was due");
        assert!(rings(96 * SECOND));
    }
}
