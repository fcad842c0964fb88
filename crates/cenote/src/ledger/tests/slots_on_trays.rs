//! Which slots go on trays, which never do, and when trays must be cleared.

use super::*;

/// A pool with as many trays as slots, and so many idle resources.
fn stocked(config: Config, idle: usize) -> Rig {
    let trays = config.max_size;
    stocked_with_trays(config, trays, idle)
}

fn stocked_with_trays(config: Config, trays: usize, idle: usize) -> Rig {
    let mut rig = Rig::with_trays(config, trays);
    rig.stock(idle);
    rig
}

/// Lends a resource, and returns the tray of its slot.
fn lend(rig: &mut Rig) -> Option<TrayNo> {
    rig.lend_on_tray().1
}

fn goes_on_tray(rig: &mut Rig) -> bool {
    let tray = lend(rig);
    assert_eq!(tray.is_none(), rig.ledger.trays().is_empty());
    tray.is_some()
}

fn needs_trays(rig: &Rig) -> bool {
    rig.ledger.needs_trays(Ask::Lease, rig.now)
}

#[test]
fn a_pool_whose_ledger_decides_about_every_trip_uses_no_trays() {
    let may = |config, hooked| may_use_trays(&limits(config), hooked);
    let without_trays = [
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
    for config in without_trays {
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
    let mut rig = stocked_with_trays(of_size(3), 2, 3);

    let trays = [(); 3].map(|()| lend(&mut rig));

    assert_eq!(trays, [Some(0), Some(1), None]);
    rig.clear_tray(0, |_| {});
    assert_eq!(lend_again(&mut rig), Some(0), "it is free again");
}

/// Gives back the resource of a slot that is on no tray, and lends it again.
fn lend_again(rig: &mut Rig) -> Option<TrayNo> {
    let mut slots = 0..rig.ledger.slots.len();
    let slot = slots.find(|slot| rig.ledger.slots[*slot].state == State::Leased);
    rig.give_back(slot.expect("one is out"));
    lend(rig)
}

#[test]
fn one_request_in_eight_takes_the_tray_of_another_slot() {
    let mut rig = stocked_with_trays(of_size(2), 1, 2);
    let (first, tray) = rig.lend_on_tray();
    assert_eq!((tray, lend(&mut rig)), (Some(0), None));

    let trips: Vec<_> = (0..7).map(|_| lend_again(&mut rig)).collect();

    let taken = trips.iter().filter(|tray| tray.is_some()).count();
    assert_eq!(taken, 1, "{trips:?}");
    assert_eq!(rig.ledger.tray_of(first.slot), None, "it was taken off");
    let trips: Vec<_> = (0..16).map(|_| lend_again(&mut rig)).collect();
    let taken = trips.iter().filter(|tray| tray.is_some()).count();
    assert_eq!(taken, 2, "one in eight: {trips:?}");
    assert_eq!(rig.ledger.count(State::OnTray), 1);
    assert_eq!(rig.status().in_use, 2);
}

#[test]
fn no_slot_goes_on_a_tray_while_there_is_room_for_spare_resources() {
    let spare = |max_size, min_idle| {
        let config = Config {
            min_idle,
            ..of_size(max_size)
        };
        goes_on_tray(&mut stocked(config, 2))
    };

    assert!(spare(2, 0), "none is asked for");
    assert!(spare(3, 0), "none is asked for, and there is room");
    assert!(spare(2, 1), "there is no room");
    assert!(!spare(4, 1));
}

#[test]
fn no_slot_goes_on_a_tray_while_a_waiter_is_queued_or_no_upkeep_runs() {
    let mut rig = stocked(of_size(2), 2);
    rig.ledger.note_upkeep(false);
    assert!(!goes_on_tray(&mut rig));
    rig.ledger.note_upkeep(true);
    let grant = rig.lend();
    let _waiter = rig.wait(None);

    assert_eq!(rig.ledger.find_tray(grant.slot), None);
}

#[test]
fn a_slot_whose_resource_was_invalidated_stays_off_the_trays() {
    let mut rig = stocked(of_size(2), 2);

    rig.call(|ledger, now, orders| ledger.invalidate(60 * SECOND, now, orders));
    rig.now += SECOND;

    assert!(!goes_on_tray(&mut rig));
}

#[test]
fn a_probe_stays_off_the_trays() {
    let mut rig = stocked(of_size(2), 2);

    rig.recover();

    assert!(!goes_on_tray(&mut rig));
}

#[test]
fn a_slot_on_a_tray_wakes_upkeep_only_for_a_job_before_its_next_round() {
    let rings = |idle_timeout, heartbeat_interval| {
        let config = Config {
            // Upkeep does not evict the only resource, so it does not wake for that by itself.
            min_size: 1,
            idle_timeout,
            heartbeat_interval,
            ..of_size(2)
        };
        let mut rig = stocked(config, 1);
        lend(&mut rig);
        rig.orders.rings()
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
    let mut rig = stocked(config, 2);
    let opened_at = rig.now;
    assert!(!needs_trays(&rig), "no slot is on a tray");

    lend(&mut rig);
    assert!(!needs_trays(&rig), "the other is fit");
    rig.now = opened_at + 5 * SECOND;
    assert!(needs_trays(&rig), "the other must be checked");
    rig.now = opened_at;
    lend(&mut rig);
    assert!(needs_trays(&rig), "the shelf is empty");
    assert!(!needs_trays(&stocked(of_size(2), 0)), "the pool is empty");
}

#[test]
fn trays_are_cleared_for_a_request_if_every_idle_resource_must_be_closed() {
    let config = Config {
        max_lifetime: Some(60 * SECOND),
        ..of_size(2)
    };
    let mut rig = stocked(config, 2);
    lend(&mut rig);

    rig.now += 60 * SECOND;

    assert!(needs_trays(&rig));
}

#[test]
fn a_slot_is_idle_or_leased_as_its_tray_was() {
    let mut rig = stocked(of_size(2), 2);
    let (idle, tray_of_idle) = rig.lend_on_tray();
    let tray_of_leased = lend(&mut rig);
    let used_at = rig.now + SECOND;

    rig.clear_tray(tray_of_idle.expect("a tray"), |off| {
        off.resource = Some(idle);
        (off.since, off.used_at, off.uses) = (used_at, used_at, 5);
    });
    rig.clear_tray(tray_of_leased.expect("a tray"), |off| {
        (off.since, off.used_at, off.uses) = (used_at, used_at, 3);
    });

    let status = rig.status();
    assert_eq!((status.idle, status.in_use), (1, 1));
    // Each was lent once before.
    assert_eq!((status.acquired, status.released), (5 + 3, 7));
    assert_eq!(rig.ledger.slots[idle.slot].used_at, used_at);
    assert_eq!(rig.lend().uses, 6);
}

#[test]
fn a_resource_that_expires_soon_in_a_full_pool_does_not_wake_upkeep_on_every_trip() {
    let config = Config {
        max_lifetime: Some(60 * SECOND),
        ..of_size(1)
    };
    let mut rig = stocked(config, 1);
    rig.now += 56 * SECOND;
    rig.upkeep();

    lend(&mut rig);

    assert!(!rig.orders.rings(), "there is no room for a successor");
}

/// An idle resource on a tray counts as lent, and so would hide a free place.
#[test]
fn trays_are_cleared_for_a_request_where_places_count() {
    let mut rig = stocked(of_size(3), 2);
    lend(&mut rig);
    let needs = |rig: &Rig, ask| rig.ledger.needs_trays(ask, rig.now);
    assert!(!needs(&rig, Ask::Lease) && needs(&rig, Ask::Place));

    rig.ledger.reserved = 1;

    assert!(needs(&rig, Ask::Lease) && needs(&rig, Ask::Place));
}

#[test]
fn trays_are_taken_from_other_slots_by_turns() {
    let mut rig = stocked_with_trays(of_size(3), 2, 3);
    assert_eq!([(); 3].map(|()| lend(&mut rig)), [Some(0), Some(1), None]);

    let trips: Vec<_> = (0..40).filter_map(|_| lend_again(&mut rig)).collect();

    assert_eq!(trips, [1, 0, 1, 0, 1]);
}

#[test]
fn no_slot_goes_on_a_tray_while_every_change_is_watched() {
    let mut rig = stocked(of_size(3), 3);
    rig.ledger.watch_closely(true);
    rig.ledger.watch_closely(true);
    rig.ledger.watch_closely(false);
    assert!(!goes_on_tray(&mut rig));

    rig.ledger.watch_closely(false);

    assert!(goes_on_tray(&mut rig));
}
