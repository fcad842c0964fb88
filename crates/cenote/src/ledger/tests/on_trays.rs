//! Which slots go on trays, which never do, and when trays must be cleared.

use super::*;

/// With as many trays as slots, and so many idle.
fn shelf(config: Config, idle: usize) -> Rig {
    let trays = config.max_size;
    shelf_with_trays(config, trays, idle)
}

fn shelf_with_trays(config: Config, trays: usize, idle: usize) -> Rig {
    let mut rig = Rig::with_trays(config, trays);
    rig.stock(idle);
    rig
}

/// What the shell does for a caller that did not wait. Returns the slot, its tray, and whether
/// upkeep was woken.
fn lend(rig: &mut Rig) -> (SlotNo, Option<TrayNo>, bool) {
    let (grant, mut orders) = rig.lend();
    let tray = rig.ledger.find_tray(grant.slot);
    if let Some(tray) = tray {
        if rig.ledger.is_tray_taken(tray) {
            clear(rig, tray);
        }
        let now = rig.now;
        let _ = rig.ledger.put_on_tray(grant.slot, tray, now, &mut orders);
    }
    assert_eq!(rig.ledger.tray_of(grant.slot), tray);
    (grant.slot, tray, orders.ring)
}

/// The slot on this tray was lent once and is still out.
fn clear(rig: &mut Rig, tray: TrayNo) {
    let slots = 0..rig.ledger.slots.len();
    let mut slots = slots.filter(|slot| rig.ledger.tray_of(*slot) == Some(tray));
    let slot = slots.next().expect("it is taken");
    let off = OffTray {
        resource: None,
        asker: asker(),
        label: None,
        since: rig.now,
        used_at: None,
        uses: rig.ledger.slots[slot].uses,
    };
    rig.ledger.taken_off(tray, off);
}

fn goes_on_tray(rig: &mut Rig) -> bool {
    let (_, tray, _) = lend(rig);
    assert_eq!(tray.is_none(), rig.ledger.trays().is_empty());
    tray.is_some()
}

fn needs_trays(rig: &Rig) -> bool {
    rig.ledger.needs_trays(rig.now)
}

#[test]
fn a_pool_that_looks_at_every_trip_uses_no_trays() {
    let may = |config, hooked| may_use_trays(&limits(config), hooked);
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
fn a_slot_goes_on_a_tray_that_is_free() {
    let mut rig = shelf_with_trays(of_size(3), 2, 3);

    let trays = [lend(&mut rig).1, lend(&mut rig).1, lend(&mut rig).1];

    assert_eq!(trays, [Some(0), Some(1), None]);
    clear(&mut rig, 0);
    assert_eq!(lend_again(&mut rig), Some(0), "it is free again");
}

/// Gives a slot without a tray back, and lends it.
fn lend_again(rig: &mut Rig) -> Option<TrayNo> {
    let mut slots = 0..rig.ledger.slots.len();
    let slot = slots.find(|slot| rig.ledger.slots[*slot].state == State::Leased);
    let _ = rig.give_back(slot.expect("one is out"));
    lend(rig).1
}

#[test]
fn a_slot_takes_the_tray_of_another_now_and_then() {
    let mut rig = shelf_with_trays(of_size(2), 1, 2);
    let (first, tray, _) = lend(&mut rig);
    assert_eq!((tray, lend(&mut rig).1), (Some(0), None));

    let trips: Vec<_> = (0..7).map(|_| lend_again(&mut rig)).collect();

    let taken = trips.iter().filter(|tray| tray.is_some()).count();
    assert_eq!(taken, 1, "{trips:?}");
    assert_eq!(rig.ledger.tray_of(first), None, "it was taken off");
    let trips: Vec<_> = (0..16).map(|_| lend_again(&mut rig)).collect();
    let taken = trips.iter().filter(|tray| tray.is_some()).count();
    assert_eq!(taken, 2, "one in eight: {trips:?}");
    assert_eq!(rig.ledger.count(State::OnTray), 1);
    assert_eq!(rig.status().in_use, 2);
}

#[test]
fn no_slot_goes_on_a_tray_while_spare_ones_would_have_to_be_opened() {
    let spare = |max_size, min_idle| {
        let config = Config {
            min_idle,
            ..of_size(max_size)
        };
        goes_on_tray(&mut shelf(config, 2))
    };

    assert!(spare(2, 0), "none is asked for");
    assert!(spare(3, 0), "none is asked for, and there is room");
    assert!(spare(2, 1), "there is no room");
    assert!(!spare(4, 1));
}

#[test]
fn no_slot_goes_on_a_tray_while_a_waiter_is_queued_or_no_upkeep_runs() {
    let mut rig = shelf(of_size(2), 2);
    rig.ledger.keep_up(false);
    assert!(!goes_on_tray(&mut rig));
    rig.ledger.keep_up(true);
    let (grant, _) = rig.lend();
    let _waiter = rig.wait(None);

    assert_eq!(rig.ledger.find_tray(grant.slot), None);
}

#[test]
fn a_slot_that_has_to_go_soon_stays_off_the_trays() {
    let mut rig = shelf(of_size(2), 2);

    let _ = rig.ledger.invalidate(60 * SECOND, rig.now);
    rig.now += SECOND;

    assert!(!goes_on_tray(&mut rig));
}

#[test]
fn a_probe_stays_off_the_trays() {
    let mut rig = shelf(of_size(2), 2);

    for state in [BreakerState::Inactive, BreakerState::Recovering] {
        let _ = rig.ledger.set_breaker(None, state, rig.now);
    }

    assert!(!goes_on_tray(&mut rig));
}

#[test]
fn a_slot_on_a_tray_wakes_upkeep_only_for_a_date_before_its_next() {
    let rings = |idle_timeout, heartbeat_interval| {
        let config = Config {
            // Until it comes back, its dates do not count.
            min_size: 1,
            idle_timeout,
            heartbeat_interval,
            ..of_size(2)
        };
        lend(&mut shelf(config, 1)).2
    };

    assert!(!rings(Some(60 * SECOND), None));
    assert!(!rings(None, Some(60 * SECOND)));
    assert!(rings(Some(10 * SECOND), None));
}

#[test]
fn trays_are_cleared_for_a_request_only_if_no_fit_resource_is_on_the_shelf() {
    let config = Config {
        check_after_idle: Some(5 * SECOND),
        ..of_size(2)
    };
    let mut rig = shelf(config, 2);
    let opened_at = rig.now;
    assert!(!needs_trays(&rig), "no slot is on a tray");

    lend(&mut rig);
    assert!(!needs_trays(&rig), "the other is fit");
    rig.now = opened_at + 5 * SECOND;
    assert!(needs_trays(&rig), "the other must be checked");
    rig.now = opened_at;
    lend(&mut rig);
    assert!(needs_trays(&rig), "the shelf is empty");
    assert!(!needs_trays(&shelf(of_size(2), 0)), "the pool is empty");
}

#[test]
fn trays_are_cleared_for_a_request_if_all_on_the_shelf_must_go() {
    let config = Config {
        max_lifetime: Some(60 * SECOND),
        ..of_size(2)
    };
    let mut rig = shelf(config, 2);
    lend(&mut rig);

    rig.now += 60 * SECOND;

    assert!(needs_trays(&rig));
}

#[test]
fn a_slot_is_idle_or_leased_as_its_tray_was() {
    let mut rig = shelf(of_size(2), 2);
    let (idle, leased) = (lend(&mut rig), lend(&mut rig));
    let used_at = rig.now + SECOND;
    let off = |resource, uses| OffTray {
        resource,
        asker: asker(),
        label: None,
        since: used_at,
        used_at: Some(used_at),
        uses,
    };

    rig.ledger
        .taken_off(idle.1.expect("a tray"), off(Some(7), 5));
    rig.ledger
        .taken_off(leased.1.expect("a tray"), off(None, 3));

    let status = rig.status();
    assert_eq!((status.idle, status.in_use), (1, 1));
    // Each was lent once to be stocked.
    assert_eq!((status.acquired, status.released), (5 + 3, 7));
    assert_eq!(rig.ledger.slots[idle.0].used_at, used_at);
    assert_eq!(rig.lend().0.uses, 6);
}

#[test]
fn a_resource_that_expires_soon_in_a_full_pool_does_not_wake_upkeep_on_every_trip() {
    let config = Config {
        max_lifetime: Some(60 * SECOND),
        ..of_size(1)
    };
    let mut rig = shelf(config, 1);
    rig.now += 56 * SECOND;
    let _ = rig.ledger.upkeep(rig.now);

    let (_, _, rings) = lend(&mut rig);

    assert!(!rings, "there is no room for a successor");
}
