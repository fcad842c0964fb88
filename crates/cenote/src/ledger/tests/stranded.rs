//! Stranded resources: when a resource was about to be lent, the runtime that it was opened on was
//! gone. The pool has it checked, and counts no use.

use super::*;

/// A check of this slot is owed, and nothing else. Returns whether the hook is to be asked, too.
#[track_caller]
fn owes_check(rig: &mut Rig, slot: SlotNo) -> bool {
    let work = rig.only_work();
    match work.job {
        Job::Vet { check, ask, .. } if work.slot == slot && check => ask,
        _ => panic!("a check of slot {slot} was to be owed: {work:?}"),
    }
}

#[test]
fn a_stranded_resource_is_checked_and_then_lent() {
    let mut rig = Rig::new(of_size(1));
    rig.stock(1);
    let lent = rig.lend();

    rig.give_back_as(lent.slot, Condition::Stranded);

    assert!(rig.orders.owed());
    assert!(rig.try_lend().is_none(), "it is not fit yet");
    assert!(!owes_check(&mut rig, lent.slot), "there is no hook");
    assert_eq!(rig.status().checking, 1);
    rig.judged(lent.slot, Outcome::Fit);
    assert_eq!(rig.lend().slot, lent.slot);
}

#[test]
fn a_stranded_resource_that_fails_its_check_is_closed() {
    let mut rig = Rig::new(of_size(1));
    rig.stock(1);
    let lent = rig.lend();
    rig.give_back_as(lent.slot, Condition::Stranded);
    owes_check(&mut rig, lent.slot);

    rig.judged(lent.slot, Outcome::Unfit(CloseReason::FailedCheck));

    let status = rig.status();
    assert_eq!((status.closing, status.closes.total()), (1, 1));
}

#[test]
fn a_stranded_resource_was_not_used_and_its_acquire_does_not_count() {
    let mut rig = Rig::new(of_size(1));
    rig.stock(1);
    let used_at = rig.now;
    rig.now += SECOND;
    let before = rig.status();
    let lent = rig.lend();
    assert_eq!(lent.uses, 2);

    rig.give_back_as(lent.slot, Condition::Stranded);

    let status = rig.status();
    let counts = |status: &Status| (status.acquired, status.released, status.in_use);
    assert_eq!(counts(&status), counts(&before));
    let slot = &rig.ledger.slots[lent.slot];
    assert_eq!((slot.uses, slot.used_at), (1, used_at));
    assert!(slot.asker.is_none(), "it has no holder");
}

/// The caller that gives it back asks again from its old place, and is the next to be served.
#[test]
fn a_stranded_resource_serves_the_first_waiter_after_its_check() {
    let (mut rig, lent) = Rig::exhausted();
    let since = rig.now;
    let (first, second) = (rig.wait(None), rig.wait(None));
    rig.give_back(lent);
    first.claim();

    rig.give_back_as(lent, Condition::Stranded);
    let again = Begun {
        again: true,
        waited: true,
        ..begun(since, Moment::NEVER)
    };
    let first = rig.queue(asker(), again);

    assert_eq!((rig.status().waiting, rig.status().waited), (2, 3));
    owes_check(&mut rig, lent);
    rig.judged(lent, Outcome::Fit);
    assert_eq!((first.wakes(), first.claim().slot), (1, lent));
    assert!(!second.has_mail());
}

#[test]
fn other_returns_serve_the_waiters_while_a_stranded_resource_is_checked() {
    let mut rig = Rig::new(of_size(2));
    rig.stock(1);
    let lent = rig.lend();
    let other = rig.lend_new();
    let waiters = [rig.wait(None), rig.wait(None)];

    rig.give_back_as(lent.slot, Condition::Stranded);
    rig.give_back(other.slot);

    assert_eq!(waiters[0].claim().slot, other.slot);
    assert!(!waiters[1].has_mail());
    owes_check(&mut rig, lent.slot);
    rig.judged(lent.slot, Outcome::Fit);
    assert_eq!(waiters[1].claim().slot, lent.slot);
}

#[test]
fn a_stranded_resource_does_not_make_the_others_suspect() {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(3600 * SECOND),
        ..of_size(2)
    });
    rig.stock(2);
    rig.now += SECOND;
    let lent = rig.lend();

    rig.give_back_as(lent.slot, Condition::Stranded);

    owes_check(&mut rig, lent.slot);
    assert_ne!(rig.lend().slot, lent.slot, "the other is lent as it is");
}

#[test]
fn the_hook_is_asked_about_a_stranded_resource_as_well() {
    let mut rig = Rig::new(of_size(1));
    rig.stock(1);
    let lent = rig.lend();
    rig.ledger.asks = true;

    rig.give_back_as(lent.slot, Condition::Stranded);

    assert!(owes_check(&mut rig, lent.slot));
}

#[test]
fn a_stranded_resource_that_must_be_closed_anyway_is_not_checked() {
    type Prepare = fn(&mut Rig);
    let reasons: [(CloseReason, Prepare); 3] = [
        (CloseReason::PoolClosed, Rig::close),
        (CloseReason::Invalidated, |rig| {
            rig.call(|ledger, now, orders| ledger.invalidate(Duration::ZERO, now, orders));
        }),
        (CloseReason::Lifetime, |rig| rig.now += 60 * SECOND),
    ];
    for (expected, prepare) in reasons {
        let mut rig = Rig::new(Config {
            max_lifetime: Some(60 * SECOND),
            ..of_size(1)
        });
        rig.stock(1);
        let lent = rig.lend();
        prepare(&mut rig);

        rig.give_back_as(lent.slot, Condition::Stranded);

        let Job::Close { reason, .. } = rig.only_work().job else {
            panic!("it was to be closed: {expected:?}");
        };
        assert_eq!(reason, expected);
    }
}

#[test]
fn a_probe_that_is_stranded_lets_the_next_probe_go() {
    let mut rig = Rig::new(Config {
        probes: 1,
        ..of_size(2)
    });
    rig.stock(2);
    rig.recover();
    let probe = rig.lend();
    let waiter = rig.wait(None);
    assert!(!waiter.has_mail(), "one probe at a time");

    rig.give_back_as(probe.slot, Condition::Stranded);

    assert_ne!(waiter.claim().slot, probe.slot);
    owes_check(&mut rig, probe.slot);
}
