//! Grants are delivered in the step that decides them, and stay revocable until they are claimed.

use super::*;

#[test]
fn a_grant_is_in_the_mailbox_when_the_return_ends() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(None);
    let mut orders = Orders::default();

    let (good, dropped) = (Condition::Good, Manner::Dropped);
    let (ledger, now) = (&mut rig.ledger, rig.now);
    ledger.give_back(lent, 1, good, dropped, now, &mut orders);

    assert_eq!(waiter.claim().slot, lent, "before any waker ran");
    assert_eq!(waiter.wakes(), 0);
    orders.wake_all();
    assert_eq!(waiter.wakes(), 1);
    assert!(!rig.look(&waiter).0, "it is not in the queue");
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
fn a_close_swaps_an_unclaimed_grant_for_a_refusal_and_closes_the_resource() {
    let (mut rig, lent) = Rig::dry();
    let (granted, queued) = (rig.wait(None), rig.wait(None));
    let _ = rig.give_back(lent);

    let (_, mut orders) = rig.ledger.close(rig.now);
    orders.wake_all();

    for waiter in [&granted, &queued] {
        assert!(matches!(waiter.refusal(), Refusal::Closed));
        assert_eq!(waiter.wakes(), 1);
    }
    let owed = rig.owed();
    assert!(
        matches!(
            owed[..],
            [Work::Close {
                slot: 0,
                resource: 1,
                ..
            }]
        ),
        "{owed:?}"
    );
    let _ = rig.ledger.closed(lent, rig.now);
    assert!(rig.ledger.is_drained());
}

#[test]
fn a_tripped_breaker_swaps_an_unclaimed_grant_for_a_refusal_and_keeps_the_resource() {
    let (mut rig, lent) = Rig::dry();
    let (granted, queued) = (rig.wait(None), rig.wait(None));
    let _ = rig.give_back(lent);

    let _ = rig.trip();

    for waiter in [&granted, &queued] {
        assert!(matches!(waiter.refusal(), Refusal::Unavailable(_)));
        assert_eq!(waiter.wakes(), 1);
    }
    let status = rig.status();
    assert_eq!((status.idle, status.in_use, status.waiting), (1, 0, 0));
    assert_eq!(rig.ledger.slots[0].uses, 1, "the second use never began");
}

#[test]
fn a_waiter_that_claims_first_keeps_its_resource_when_the_pool_closes() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(None);
    let _ = rig.give_back(lent);

    let grant = waiter.claim();
    let _ = rig.ledger.close(rig.now);

    assert_eq!(grant.slot, lent);
    assert!(!waiter.has_mail(), "its wait is over");
    assert_eq!(rig.status().in_use, 1);
    assert!(rig.owed().is_empty(), "a leased resource is not closed");
}

#[test]
fn a_waiter_that_claims_first_keeps_its_resource_when_the_breaker_trips() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(None);
    let _ = rig.give_back(lent);

    let _ = waiter.claim();
    let _ = rig.trip();

    assert!(!waiter.has_mail());
    assert_eq!((rig.status().in_use, rig.status().idle), (1, 0));
}

#[test]
fn a_waiter_that_leaves_passes_its_unclaimed_grant_to_the_next() {
    let (mut rig, lent) = Rig::dry();
    let (first, second) = (rig.wait(None), rig.wait(None));
    let _ = rig.give_back(lent);

    let _ = rig.withdraw(&first);

    assert!(!first.has_mail());
    assert_eq!((second.wakes(), second.claim().slot), (1, lent));
    let status = rig.status();
    let waits = (status.waited, status.cancelled, status.waiting);
    assert_eq!(waits, (3, 1, 0));
    assert_eq!((status.acquired, status.released), (2, 1));
}

#[test]
fn a_grant_that_no_waiter_takes_is_idle_and_was_no_use() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(None);
    let _ = rig.give_back(lent);

    let _ = rig.withdraw(&waiter);

    let status = rig.status();
    assert_eq!((status.idle, status.in_use, status.acquired), (1, 0, 1));
    assert_eq!(rig.lend().0.uses, 2, "it was used once before");
}

#[test]
fn a_waiter_that_leaves_the_queue_leaves_no_trace() {
    let (mut rig, lent) = Rig::dry();
    let waiters = [(); 4].map(|()| rig.wait(None));

    let _ = rig.withdraw(&waiters[1]);
    let _ = rig.withdraw(&waiters[3]);
    let _ = rig.withdraw(&waiters[1]);

    assert_eq!((rig.status().waiting, rig.status().cancelled), (2, 2));
    for expected in [0, 2] {
        let _ = rig.give_back(lent);
        assert!(waiters[expected].has_mail());
        let _ = waiters[expected].claim();
    }
    let _ = rig.give_back(lent);
    assert_eq!(rig.status().idle, 1);
    assert_eq!(waiters.map(|waiter| waiter.wakes()), [1, 0, 1, 0]);
}

/// A refusal that its waiter did not read must not wait for the next waiter.
#[test]
fn the_next_waiter_finds_an_empty_mailbox_after_a_refusal() {
    let (mut rig, lent) = Rig::dry();
    let (granted, queued) = (rig.wait(None), rig.wait(None));
    let _ = rig.give_back(lent);
    let _ = rig.trip();
    for waiter in [granted, queued] {
        let _ = rig.withdraw(&waiter);
        assert!(!waiter.has_mail());
    }
    let active = BreakerState::Active;
    let _ = rig.ledger.set_breaker(None, active, rig.now);
    let (again, _) = rig.lend();

    let waiters = [(); 3].map(|()| rig.wait(None));

    assert!(waiters.iter().all(|waiter| !waiter.has_mail()));
    let _ = rig.give_back(again.slot);
    assert_eq!(waiters[0].claim().slot, lent);
}

#[test]
fn a_mailbox_serves_the_next_waiter_only_when_its_waiter_let_it_go() {
    let (mut rig, lent) = Rig::dry();
    let first = rig.wait(None);
    let _ = rig.give_back(lent);
    let _ = first.claim();
    let kept = Arc::clone(&first.mailbox);
    // The lease ends while its waiter still has the mailbox.
    let _ = rig.give_back(lent);
    let (again, _) = rig.lend();

    let second = rig.wait(None);

    assert!(!Arc::ptr_eq(&kept, &second.mailbox));
    let mailbox = Arc::downgrade(&second.mailbox);
    let _ = rig.give_back(again.slot);
    let _ = second.claim();
    drop(second);
    let _ = rig.give_back(lent);
    let _ = rig.lend();
    let third = rig.wait(None);
    let reused = mailbox.upgrade().expect("it was kept");
    assert!(Arc::ptr_eq(&reused, &third.mailbox) && !third.has_mail());
}

#[test]
fn a_refusal_of_an_open_goes_to_the_first_waiter_alone() {
    let mut rig = Rig::new(of_size(1));
    let (first, second) = (rig.wait(None), rig.wait(None));
    let slot = rig.begin_opens()[0];

    let (_, mut orders) = rig.ledger.open_failed(slot, "refused", rig.now);
    orders.wake_all();

    assert!(matches!(first.refusal(), Refusal::Open("refused")));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert!(!second.has_mail());
}

#[test]
fn a_waiter_that_met_a_dead_resource_is_served_before_all_others() {
    let (mut rig, lent) = Rig::dry();
    let since = rig.now;
    let (first, second) = (rig.wait(None), rig.wait(None));
    let _ = rig.give_back(lent);
    let _ = first.claim();
    rig.now += SECOND;
    let _ = rig.give_back_as(lent, Condition::Dead);
    let (again, mut orders) = (
        Some(Again {
            since,
            waited: true,
        }),
        Orders::default(),
    );
    let mut waker = Some(Waker::noop().clone());
    let (ledger, now) = (&mut rig.ledger, rig.now);

    let answer = ledger.request(asker(), &mut waker, Moment::NEVER, again, now, &mut orders);

    let Answer::Wait { mailbox, .. } = answer else {
        panic!("it was to wait: {answer:?}");
    };
    let status = rig.status();
    assert_eq!((status.waited, status.waiting), (3, 2), "it waits once");
    assert_eq!(status.oldest_wait, Some(SECOND), "since it first asked");
    assert_eq!(status.acquired, 1, "it never had the dead one");
    let owed = rig.owed();
    assert!(matches!(owed[..], [Work::Close { .. }]), "{owed:?}");
    let _ = rig.ledger.closed(lent, rig.now);
    rig.open();
    assert!(matches!(mailbox.take(), Some(Ok(_))));
    assert!(!second.has_mail());
}

#[test]
fn waits_are_counted_once_however_they_end() {
    let (mut rig, lent) = Rig::dry();
    let waited = |rig: &Rig| rig.status().wait_time;
    let (granted, gone, queued) = (rig.wait(None), rig.wait(None), rig.wait(None));
    rig.now += SECOND;
    let _ = rig.give_back(lent);
    assert_eq!(waited(&rig), SECOND, "one waits no more");

    rig.now += SECOND;
    let _ = granted.claim();
    assert_eq!(waited(&rig), SECOND);
    let _ = rig.withdraw(&gone);
    assert_eq!(waited(&rig), 3 * SECOND, "one has left after two seconds");
    rig.now += SECOND;
    let _ = rig.ledger.close(rig.now);

    assert_eq!(waited(&rig), 6 * SECOND, "one was refused after three");
    let _ = rig.withdraw(&queued);
    assert_eq!(waited(&rig), 6 * SECOND);
}
