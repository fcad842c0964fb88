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
    let leaves: [Leave; 3] = [
        |rig, waiter, _| rig.withdraw(waiter),
        |rig, _, lent| rig.give_back(lent),
        |rig, waiter, _| {
            rig.now += SECOND / 2;
            rig.look(waiter);
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
