//! Opens for waiters: how many run at once, and what happens when they hang.

use super::*;

fn growing(max_size: usize, max_opening: usize) -> Rig {
    Rig::new(Config {
        max_opening,
        open_timeout: None,
        ..of_size(max_size)
    })
}

#[test]
fn an_open_that_is_held_up_does_not_count_against_max_opening() {
    for max_opening in [1, 2, 4] {
        let mut rig = growing(10, max_opening);
        let waiters = [(); 10].map(|()| rig.wait(None));
        assert_eq!(rig.begin_opens().len(), max_opening, "these hang");

        rig.now += HELD_UP_AFTER;
        let waits = rig.look(&waiters[0]);

        assert!(waits && rig.orders.owed());
        assert_eq!(rig.open(), max_opening, "as many beside them");
        let served = waiters.iter().filter(|waiter| waiter.has_mail()).count();
        assert!(served >= max_opening, "{served} of {max_opening}");
    }
}

#[test]
fn an_open_that_is_not_held_up_counts_against_max_opening() {
    let mut rig = growing(10, 1);
    let waiters = [(); 10].map(|()| rig.wait(None));
    assert_eq!(rig.begin_opens().len(), 1);
    rig.now += HELD_UP_AFTER - Duration::from_nanos(1);

    rig.look(&waiters[0]);

    assert!(!rig.orders.owed() && rig.begin_opens().is_empty());
}

#[test]
fn opens_that_hang_never_exceed_max_size() {
    let mut rig = growing(3, 1);
    let waiter = rig.wait(None);
    let _others = [(); 5].map(|()| rig.wait(None));

    for _ in 0..10 {
        rig.begin_opens();
        rig.now += HELD_UP_AFTER;
        rig.look(&waiter);
    }

    assert_eq!((rig.status().opening, rig.status().total), (3, 3));
}

#[test]
fn a_hung_open_blocks_neither_refill_nor_warm_up() {
    let mut rig = Rig::new(Config {
        min_size: 2,
        max_opening: 1,
        ..of_size(4)
    });
    let upkeep = rig.upkeep();
    assert_eq!(rig.begin_opens(), [0], "this one hangs");
    assert_eq!(
        upkeep.next,
        Some(rig.now + HELD_UP_AFTER),
        "upkeep looks again"
    );

    rig.now += HELD_UP_AFTER;
    rig.upkeep();

    assert_eq!(rig.begin_opens(), [1]);
    rig.now += HELD_UP_AFTER;
    let failed = rig.status().open_failed;
    rig.opened(1);
    let warm = rig.call(|ledger, now, orders| ledger.warm(failed, now, orders));
    assert!(warm.is_pending());
}

#[test]
fn another_resource_is_opened_beside_a_check_that_hangs() {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(SECOND),
        ..of_size(2)
    });
    rig.stock(1);
    rig.now += SECOND;
    let waiter = rig.wait(None);
    let work = rig.only_work();
    assert!(matches!(work.job, Job::Vet { check: true, .. }), "{work:?}");

    rig.now += HELD_UP_AFTER;
    rig.look(&waiter);

    assert_eq!(rig.open(), 1);
    assert_eq!(waiter.claim().uses, 1);
}

#[test]
fn no_more_resources_are_opened_than_there_are_waiters() {
    let mut rig = growing(10, 10);
    let waiters = [(); 3].map(|()| rig.wait(None));

    assert_eq!(rig.open(), 3);

    assert!(waiters.iter().all(Waiter::has_mail));
    assert!(rig.begin_opens().is_empty());
}

/// No lease can come back to the queue before the first open is done.
#[test]
fn a_queue_stands_only_since_a_resource_lives() {
    let mut rig = growing(10, 4);
    let _waiters = [(); 10].map(|()| rig.wait(None));
    let opens = rig.begin_opens();
    assert_eq!(opens.len(), 4);
    rig.now += HELD_UP_AFTER / 2;

    rig.opened(opens[0]);

    assert!(rig.begin_opens().is_empty(), "its lease may come back soon");
}

#[test]
fn an_open_that_was_held_up_and_fails_is_not_tried_again_beside_its_successor() {
    let mut rig = Rig::new(Config {
        max_opening: 1,
        open_timeout: None,
        on_open_error: OnOpenError::Retry,
        ..of_size(4)
    });
    let waiter = rig.wait(None);
    let held_up = rig.begin_opens()[0];
    rig.now += HELD_UP_AFTER;
    rig.look(&waiter);
    let successor = rig.begin_opens()[0];

    assert_eq!(rig.fail_open(held_up), AfterFailure::GiveUp);
    let after = rig.fail_open(successor);
    assert!(matches!(after, AfterFailure::Retry(_)), "{after:?}");
}

#[test]
fn an_open_is_not_held_up_by_the_pause_before_its_next_try() {
    let mut rig = Rig::new(Config {
        max_opening: 1,
        on_open_error: OnOpenError::Retry,
        ..of_size(4)
    });
    let waiter = rig.wait(None);
    let slot = rig.begin_opens()[0];
    let AfterFailure::Retry(pause) = rig.fail_open(slot) else {
        panic!("a waiter is queued");
    };

    rig.now += pause + HELD_UP_AFTER - Duration::from_nanos(1);
    rig.look(&waiter);
    assert!(rig.begin_opens().is_empty());
    rig.now += Duration::from_nanos(1);
    rig.look(&waiter);

    assert_eq!(rig.begin_opens().len(), 1);
}
