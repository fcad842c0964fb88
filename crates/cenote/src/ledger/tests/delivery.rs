//! Grants are delivered in the step that decides them, and stay revocable until they are claimed.

use super::*;

#[test]
fn a_grant_is_in_the_mailbox_when_the_return_ends() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(None);
    let mut orders = Orders::default();
    let token = token_of(lent);

    let (good, dropped) = (Condition::Good, Manner::Dropped);
    let (ledger, now) = (&mut rig.ledger, rig.now);
    ledger.give_back(lent, token, good, dropped, now, &mut orders);

    assert_eq!(waiter.claim().slot, lent, "before any waker ran");
    assert_eq!(waiter.wakes(), 0);
    orders.wake_all();
    assert_eq!(waiter.wakes(), 1);
    assert!(!rig.look(&waiter), "it left the queue");
}

#[test]
fn a_grant_is_in_the_mailbox_when_the_open_ends() {
    let mut rig = Rig::new(of_size(1));
    let waiter = rig.wait(None);

    rig.open();

    assert_eq!(waiter.claim().uses, 1);
    assert_eq!(waiter.wakes(), 1);
}

#[test]
fn a_close_swaps_an_unclaimed_grant_for_an_error_and_closes_the_resource() {
    let (mut rig, lent) = Rig::exhausted();
    let (granted, queued) = (rig.wait(None), rig.wait(None));
    rig.give_back(lent);

    rig.close();

    for waiter in [&granted, &queued] {
        assert!(matches!(waiter.error(), AcquireError::Closed { .. }));
        assert_eq!(waiter.wakes(), 1);
    }
    let Work { slot, job } = rig.only_work();
    let Job::Close { resource, .. } = job else {
        panic!("it was to be closed: {job:?}");
    };
    assert_eq!((slot, resource), (lent, token_of(lent)));
    rig.closed(lent);
    assert!(rig.ledger.is_drained());
}

#[test]
fn a_tripped_breaker_swaps_an_unclaimed_grant_for_an_error_and_keeps_the_resource() {
    let (mut rig, lent) = Rig::exhausted();
    let (granted, queued) = (rig.wait(None), rig.wait(None));
    rig.give_back(lent);

    rig.set_breaker(BreakerState::Inactive);

    for waiter in [&granted, &queued] {
        assert!(matches!(waiter.error(), AcquireError::Unavailable(_)));
        assert_eq!(waiter.wakes(), 1);
    }
    let status = rig.status();
    assert_eq!((status.idle, status.in_use, status.waiting), (1, 0, 0));
    assert_eq!(rig.ledger.slots[0].uses, 1, "the second use never began");
}

#[test]
fn a_waiter_that_claims_first_keeps_its_resource_when_the_pool_closes() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(None);
    rig.give_back(lent);

    let grant = waiter.claim();
    rig.close();

    assert_eq!(grant.slot, lent);
    assert!(!waiter.has_mail(), "its wait is over");
    assert_eq!(rig.status().in_use, 1);
    assert!(rig.owed().is_empty(), "a leased resource is not closed");
}

#[test]
fn a_waiter_that_claims_first_keeps_its_resource_when_the_breaker_trips() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(None);
    rig.give_back(lent);

    waiter.claim();
    rig.set_breaker(BreakerState::Inactive);

    assert!(!waiter.has_mail());
    assert_eq!((rig.status().in_use, rig.status().idle), (1, 0));
}

#[test]
fn a_waiter_that_leaves_passes_its_unclaimed_grant_to_the_next() {
    let (mut rig, lent) = Rig::exhausted();
    let (first, second) = (rig.wait(None), rig.wait(None));
    rig.give_back(lent);

    rig.withdraw(&first);

    assert!(!first.has_mail());
    assert_eq!((second.wakes(), second.claim().slot), (1, lent));
    let status = rig.status();
    let waits = (status.waited, status.cancelled, status.waiting);
    assert_eq!(waits, (3, 1, 0));
    assert_eq!((status.acquired, status.released), (2, 1));
}

#[test]
fn a_grant_that_no_waiter_claims_goes_to_the_shelf_and_counts_as_no_use() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(None);
    rig.give_back(lent);

    rig.withdraw(&waiter);

    let status = rig.status();
    assert_eq!((status.idle, status.in_use, status.acquired), (1, 0, 1));
    assert_eq!(rig.lend().uses, 2, "it was used once before");
}

#[test]
fn a_waiter_that_leaves_the_queue_leaves_no_trace() {
    let (mut rig, lent) = Rig::exhausted();
    let waiters = [(); 4].map(|()| rig.wait(None));

    rig.withdraw(&waiters[1]);
    rig.withdraw(&waiters[3]);
    rig.withdraw(&waiters[1]);

    assert_eq!((rig.status().waiting, rig.status().cancelled), (2, 2));
    for expected in [0, 2] {
        rig.give_back(lent);
        assert!(waiters[expected].has_mail());
        waiters[expected].claim();
    }
    rig.give_back(lent);
    assert_eq!(rig.status().idle, 1);
    assert_eq!(waiters.map(|waiter| waiter.wakes()), [1, 0, 1, 0]);
}

/// An error that its waiter did not read must not be left for the next waiter.
#[test]
fn the_next_waiter_finds_an_empty_mailbox_after_an_error() {
    let (mut rig, lent) = Rig::exhausted();
    let (granted, queued) = (rig.wait(None), rig.wait(None));
    rig.give_back(lent);
    rig.set_breaker(BreakerState::Inactive);
    for waiter in [granted, queued] {
        rig.withdraw(&waiter);
        assert!(!waiter.has_mail());
    }
    rig.set_breaker(BreakerState::Active);
    let again = rig.lend();

    let waiters = [(); 3].map(|()| rig.wait(None));

    assert!(waiters.iter().all(|waiter| !waiter.has_mail()));
    rig.give_back(again.slot);
    assert_eq!(waiters[0].claim().slot, lent);
}

#[test]
fn a_mailbox_is_used_again_only_after_its_waiter_dropped_it() {
    let (mut rig, lent) = Rig::exhausted();
    let first = rig.wait(None);
    rig.give_back(lent);
    first.claim();
    let kept = Arc::clone(&first.mailbox);
    // The lease ends while its waiter still has the mailbox.
    rig.give_back(lent);
    let again = rig.lend();

    let second = rig.wait(None);

    assert!(!Arc::ptr_eq(&kept, &second.mailbox));
    let mailbox = Arc::downgrade(&second.mailbox);
    rig.give_back(again.slot);
    second.claim();
    drop(second);
    rig.give_back(lent);
    rig.lend();
    let third = rig.wait(None);
    let reused = mailbox.upgrade().expect("it was kept");
    assert!(Arc::ptr_eq(&reused, &third.mailbox) && !third.has_mail());
}

#[test]
fn a_failed_open_is_told_to_the_first_waiter_alone() {
    let mut rig = Rig::new(of_size(1));
    let (first, second) = (rig.wait(None), rig.wait(None));
    let slot = rig.begin_opens()[0];

    rig.fail_open(slot);

    let error = first.error();
    assert!(matches!(error, AcquireError::Open { .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert!(!second.has_mail());
}

#[test]
fn a_waiter_that_met_a_dead_resource_is_served_before_all_others() {
    let (mut rig, lent) = Rig::exhausted();
    let since = rig.now;
    let (first, second) = (rig.wait(None), rig.wait(None));
    rig.give_back(lent);
    first.claim();
    rig.now += SECOND;
    rig.give_back_as(lent, Condition::Dead);
    let again = Begun {
        again: true,
        waited: true,
        ask: Ask::Lease,
        ..begun(since, Moment::NEVER)
    };

    let first = rig.queue(asker(), again);

    let status = rig.status();
    assert_eq!((status.waited, status.waiting), (3, 2), "it waits once");
    assert_eq!(status.oldest_wait, Some(SECOND), "since it first asked");
    assert_eq!(status.acquired, 1, "it never had the dead one");
    let work = rig.only_work();
    assert!(matches!(work.job, Job::Close { .. }), "{work:?}");
    rig.closed(lent);
    rig.open();
    first.claim();
    assert!(!second.has_mail());
}

#[test]
fn waits_are_counted_once_however_they_end() {
    let (mut rig, lent) = Rig::exhausted();
    let waited = |rig: &Rig| rig.status().wait_time;
    let (granted, gone, queued) = (rig.wait(None), rig.wait(None), rig.wait(None));
    rig.now += SECOND;
    rig.give_back(lent);
    assert_eq!(waited(&rig), SECOND, "one was served after a second");

    rig.now += SECOND;
    granted.claim();
    assert_eq!(waited(&rig), SECOND);
    rig.withdraw(&gone);
    assert_eq!(waited(&rig), 3 * SECOND, "another left after two");
    rig.now += SECOND;
    rig.close();

    assert_eq!(waited(&rig), 6 * SECOND, "the last was refused after three");
    rig.withdraw(&queued);
    assert_eq!(waited(&rig), 6 * SECOND);
}

/// The destructor of an error is user code, which must not run under the lock.
#[test]
fn an_old_open_error_is_kept_by_the_orders_until_the_lock_is_released() {
    let mut rig = Rig::new(of_size(1));
    let message: Arc<str> = "refused".into();
    let old = || OpenError::Panicked(Arc::clone(&message));
    let references = || Arc::strong_count(&message) - 1;
    rig.wait(None);
    let slot = rig.begin_opens()[0];
    rig.call(|ledger, now, orders| ledger.open_failed(slot, old(), now, orders));
    rig.set_breaker(BreakerState::Inactive);
    assert_eq!(
        references(),
        2,
        "the last failure, and the cause of the trip"
    );

    let mut orders = Orders::default();
    let (ledger, now) = (&mut rig.ledger, rig.now);
    ledger.set_breaker(None, BreakerState::Recovering, now, &mut orders);
    assert_eq!(references(), 3, "the cause of the new state is a copy");
    drop(orders);

    assert_eq!(references(), 2);
    rig.wait(None);
    let slot = rig.begin_opens()[0];
    let mut orders = Orders::default();
    let ledger = &mut rig.ledger;
    ledger.open_failed(slot, refused(), rig.now, &mut orders);
    assert_eq!(references(), 2);
    drop(orders);
    assert_eq!(references(), 1, "the cause of the state is left");
}
