//! Make before break: the successor of a resource that expires is opened first, if it will be
//! needed.

use super::*;

const LIFETIME: Duration = Duration::from_secs(10);

fn mortal(config: Config) -> Rig {
    Rig::new(Config {
        max_lifetime: Some(LIFETIME),
        ..config
    })
}

/// What there was at the end of each round of upkeep.
#[derive(Debug)]
struct Seen {
    /// The fewest that were alive.
    alive: usize,
    /// The fewest that were idle.
    idle: usize,
    /// The most that there were, those that were being opened included.
    total: usize,
}

/// Upkeep runs whenever it is due, and all its work succeeds at once.
fn keep_up(rig: &mut Rig, period: Duration, mut each: impl FnMut(&mut Rig)) -> Seen {
    let end = rig.now + period;
    let mut seen = Seen {
        alive: usize::MAX,
        total: 0,
        idle: usize::MAX,
    };
    for _ in 0..10_000 {
        let (upkeep, _) = rig.ledger.upkeep(rig.now);
        let status = rig.status();
        seen.alive = seen.alive.min(status.total - status.opening);
        seen.total = seen.total.max(status.total);
        seen.idle = seen.idle.min(status.idle);
        do_work(rig);
        each(rig);
        do_work(rig);
        let wakes_at = rig.ledger.wakes_at.or(upkeep.next);
        rig.now = wakes_at.map_or(end, |at| at.max(rig.now));
        if rig.now >= end {
            return seen;
        }
    }
    panic!("upkeep spins");
}

fn do_work(rig: &mut Rig) {
    while let Some(work) = rig.ledger.next_work() {
        let _ = match work {
            Work::Open { slot } => rig.opened(slot),
            Work::Close { slot, .. } => rig.ledger.closed(slot, rig.now),
            work => panic!("{work:?} is owed"),
        };
    }
}

#[test]
fn a_long_lease_has_one_successor_at_most() {
    let mut rig = mortal(of_size(10));
    rig.stock(1);
    let lent = rig.lend().0;
    assert_eq!(lent.uses, 2, "it is in use");

    let seen = keep_up(&mut rig, 20 * LIFETIME, |_| {});

    assert!(rig.status().opened <= 2, "{} opens", rig.status().opened);
    assert!(seen.total <= 2);
}

#[test]
fn a_resource_in_steady_use_is_replaced_once_in_a_lifetime() {
    let mut rig = mortal(Config {
        upkeep_interval: SECOND / 10,
        ..of_size(10)
    });
    rig.stock(1);
    let lifetimes = 20;

    let seen = keep_up(&mut rig, lifetimes * LIFETIME, |rig| {
        let slot = rig.lend().0.slot;
        let _ = rig.give_back(slot);
    });

    assert_eq!(seen.alive, 1, "it was there whenever it was asked for");
    assert!(seen.total <= 2);
    let opened = rig.status().opened;
    assert!(
        opened <= 1 + u64::from(lifetimes) * 10 / 9 + 1,
        "{opened} opens"
    );
}

#[test]
fn idle_resources_that_no_caller_needs_are_not_replaced() {
    let mut rig = mortal(of_size(10));
    rig.stock(5);

    keep_up(&mut rig, 5 * LIFETIME, |_| {});

    let status = rig.status();
    assert_eq!((status.opened, status.total), (5, 0));
}

#[test]
fn a_pool_never_falls_below_min_size_when_resources_expire_together() {
    let mut rig = mortal(Config {
        min_size: 3,
        ..of_size(10)
    });
    let _ = rig.ledger.upkeep(rig.now);
    do_work(&mut rig);

    let seen = keep_up(&mut rig, 5 * LIFETIME, |_| {});

    assert_eq!(seen.alive, 3);
    assert!(seen.total <= 6, "{} at once", seen.total);
    let opened = rig.status().opened;
    assert!(opened <= 3 * 7, "{opened} opens in five lifetimes");
}

#[test]
fn a_pool_never_falls_below_min_idle_when_resources_expire_together() {
    let mut rig = mortal(Config {
        min_idle: 2,
        ..of_size(10)
    });
    let _ = rig.ledger.upkeep(rig.now);
    do_work(&mut rig);

    let seen = keep_up(&mut rig, 5 * LIFETIME, |_| {});

    assert_eq!(seen.idle, 2);
    assert!(seen.total <= 4, "{} at once", seen.total);
    let opened = rig.status().opened;
    assert!(opened <= 2 * 7, "{opened} opens in five lifetimes");
}

#[test]
fn a_lease_that_expires_is_no_reason_to_open_a_spare_one() {
    let mut rig = mortal(Config {
        min_idle: 1,
        ..of_size(10)
    });
    let _lent = rig.lend_new();
    rig.now += LIFETIME / 2;
    let _ = rig.ledger.upkeep(rig.now);
    do_work(&mut rig);
    assert_eq!((rig.status().idle, rig.status().opened), (1, 2));

    rig.now += LIFETIME / 2;
    let _ = rig.ledger.upkeep(rig.now);

    assert!(rig.begin_opens().is_empty(), "the spare one is there");
}

#[test]
fn a_successor_that_there_is_no_room_for_is_opened_after_the_end() {
    let mut rig = mortal(Config {
        min_size: 1,
        ..of_size(1)
    });
    let _ = rig.ledger.upkeep(rig.now);
    do_work(&mut rig);

    let seen = keep_up(&mut rig, 3 * LIFETIME, |_| {});

    assert_eq!(seen.total, 1);
    assert!((3..=4).contains(&rig.status().opened));
}
