//! Make before break: the successor of a resource that expires is opened before its end, if it
//! will be needed.

use super::*;

const LIFETIME: Duration = Duration::from_secs(10);

fn expiring(config: Config) -> Rig {
    Rig::new(Config {
        max_lifetime: Some(LIFETIME),
        ..config
    })
}

/// The extremes over all rounds of upkeep.
#[derive(Debug)]
struct Seen {
    /// The fewest resources that were alive.
    alive: usize,
    /// The fewest that were idle.
    idle: usize,
    /// The most that were alive or being opened.
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
        let upkeep = rig.upkeep();
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
        match work.job {
            Job::Open => rig.opened(work.slot),
            Job::Close { .. } => rig.closed(work.slot),
            Job::Vet { .. } | Job::Clean { .. } => panic!("{work:?} is owed"),
        }
    }
}

#[test]
fn a_long_lease_has_one_successor_at_most() {
    let mut rig = expiring(of_size(10));
    rig.stock(1);
    assert_eq!(rig.lend().uses, 2, "it was used before");

    let seen = keep_up(&mut rig, 20 * LIFETIME, |_| {});

    assert!(rig.status().opened <= 2, "{} opens", rig.status().opened);
    assert!(seen.total <= 2);
}

#[test]
fn a_resource_in_steady_use_is_replaced_once_in_a_lifetime() {
    let mut rig = expiring(Config {
        upkeep_interval: SECOND / 10,
        ..of_size(10)
    });
    rig.stock(1);
    let lifetimes = 20;

    let seen = keep_up(&mut rig, lifetimes * LIFETIME, |rig| {
        let slot = rig.lend().slot;
        rig.give_back(slot);
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
    let mut rig = expiring(of_size(10));
    rig.stock(5);

    keep_up(&mut rig, 5 * LIFETIME, |_| {});

    let status = rig.status();
    assert_eq!((status.opened, status.total), (5, 0));
}

#[test]
fn a_pool_never_falls_below_min_size_when_resources_expire_together() {
    let mut rig = expiring(Config {
        min_size: 3,
        ..of_size(10)
    });
    rig.upkeep();
    do_work(&mut rig);

    let seen = keep_up(&mut rig, 5 * LIFETIME, |_| {});

    assert_eq!(seen.alive, 3);
    assert!(seen.total <= 6, "{} at once", seen.total);
    let opened = rig.status().opened;
    assert!(opened <= 3 * 7, "{opened} opens in five lifetimes");
}

#[test]
fn a_pool_never_falls_below_min_idle_when_resources_expire_together() {
    let mut rig = expiring(Config {
        min_idle: 2,
        ..of_size(10)
    });
    rig.upkeep();
    do_work(&mut rig);

    let seen = keep_up(&mut rig, 5 * LIFETIME, |_| {});

    assert_eq!(seen.idle, 2);
    assert!(seen.total <= 4, "{} at once", seen.total);
    let opened = rig.status().opened;
    assert!(opened <= 2 * 7, "{opened} opens in five lifetimes");
}

#[test]
fn no_spare_resource_is_opened_because_a_lease_expires() {
    let mut rig = expiring(Config {
        min_idle: 1,
        ..of_size(10)
    });
    let _lent = rig.lend_new();
    rig.now += LIFETIME / 2;
    rig.upkeep();
    do_work(&mut rig);
    assert_eq!((rig.status().idle, rig.status().opened), (1, 2));

    rig.now += LIFETIME / 2;
    rig.upkeep();

    assert!(rig.begin_opens().is_empty(), "the spare one is there");
}

#[test]
fn a_successor_without_room_is_opened_when_the_old_resource_is_closed() {
    let mut rig = expiring(Config {
        min_size: 1,
        ..of_size(1)
    });
    rig.upkeep();
    do_work(&mut rig);

    let seen = keep_up(&mut rig, 3 * LIFETIME, |_| {});

    assert_eq!(seen.total, 1);
    assert!((3..=4).contains(&rig.status().opened));
}

/// A pool with so many idle resources that are used, and expire soon.
fn used(config: Config, idle: usize, last_use: Duration) -> Rig {
    let mut rig = expiring(config);
    rig.stock(idle);
    rig.now += last_use;
    let leases: Vec<_> = (0..idle).map(|_| rig.lend().slot).collect();
    leases.into_iter().for_each(|slot| rig.give_back(slot));
    rig
}

/// The number of successors that are opened when the lifetime is nearly over.
fn successors(rig: &mut Rig, since_last_use: Duration) -> usize {
    rig.now += since_last_use;
    rig.upkeep();
    rig.begin_opens().len()
}

#[test]
fn a_resource_is_in_use_for_five_seconds_after_its_last_use() {
    let last_use = LIFETIME * 9 / 10 - 5 * SECOND;
    let moment = Duration::from_nanos(1);

    let mut unused = used(of_size(2), 1, last_use);
    assert_eq!(successors(&mut unused, 5 * SECOND), 0);

    let mut in_use = used(of_size(2), 1, last_use + moment);
    assert_eq!(successors(&mut in_use, 5 * SECOND - moment), 1);
}

#[test]
fn a_resource_in_use_needs_no_successor_while_another_is_idle() {
    let mut rig = used(of_size(4), 1, 8 * SECOND);
    let lent = rig.lend().slot;
    let young = rig.lend_new().slot;
    rig.give_back(young);
    rig.give_back(lent);

    assert_eq!(successors(&mut rig, SECOND), 0);
}

#[test]
fn a_resource_in_use_needs_no_successor_while_another_is_being_opened() {
    let mut rig = used(of_size(4), 1, 8 * SECOND);
    let lent = rig.lend().slot;
    let waiter = rig.wait(None);
    assert_eq!(rig.begin_opens().len(), 1);
    rig.withdraw(&waiter);
    rig.give_back(lent);

    assert_eq!(successors(&mut rig, SECOND), 0);
}

#[test]
fn a_spare_resource_needs_no_successor_while_another_is_being_opened() {
    let mut rig = used(
        Config {
            min_idle: 1,
            ..of_size(4)
        },
        1,
        SECOND,
    );
    let lent = rig.lend().slot;
    rig.upkeep();
    assert_eq!(rig.begin_opens().len(), 1);
    rig.give_back(lent);

    assert_eq!(successors(&mut rig, 8 * SECOND), 0);
}
