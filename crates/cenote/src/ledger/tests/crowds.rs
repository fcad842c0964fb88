//! Waiters that are not polled in time: what they would have got goes to the next.

use super::*;

const STEP: Duration = Duration::from_millis(100);

#[test]
fn a_waiter_whose_deadline_has_passed_is_granted_nothing() {
    let (mut rig, lent) = Rig::dry();
    let [late, also_late, timely] = rig.crowd(STEP, [1, 1, 3]);
    // The alarm is late.
    rig.now += 2 * STEP;

    let _ = rig.give_back(lent);

    assert_eq!(timely.claim().slot, lent);
    for waiter in [&late, &also_late] {
        assert_eq!(waiter.timeout().waited(), 2 * STEP);
        assert_eq!(waiter.wakes(), 1);
    }
    assert_eq!(rig.status().timed_out, 2);
}

#[test]
fn a_resource_is_idle_if_every_waiter_is_overdue() {
    let (mut rig, lent) = Rig::dry();
    let waiters = rig.crowd(STEP, [1, 2]);
    rig.now += 2 * STEP;

    let _ = rig.give_back(lent);

    assert!(waiters.iter().all(Waiter::has_mail));
    assert_eq!((rig.status().idle, rig.status().waiting), (1, 0));
}

#[test]
fn a_caller_without_any_time_is_queued_and_times_out_at_once() {
    let (mut rig, _) = Rig::dry();

    let waiter = rig.wait(Some(Duration::ZERO));

    assert!(!rig.look(&waiter).0);
    assert_eq!(waiter.timeout().waited(), Duration::ZERO);
}

/// One round of timeouts handles a few thousand.
#[test]
fn no_overdue_waiter_is_granted_anything_however_many_there_are() {
    let (mut rig, lent) = Rig::dry();
    let count = if cfg!(miri) { 300 } else { 10_000 };
    let late: Vec<_> = (0..count).map(|_| rig.wait(Some(STEP))).collect();
    let timely = rig.wait(Some(3 * STEP));
    rig.now += 2 * STEP;

    let _ = rig.give_back(lent);

    let timed_out = late.iter().filter(|waiter| waiter.has_mail());
    let timed_out = timed_out.map(Waiter::timeout).count();
    assert_eq!(timed_out, count, "each has its timeout, and not a grant");
    assert!(late.iter().all(|waiter| waiter.wakes() == 1));
    assert_eq!(timely.claim().slot, lent);
    assert_eq!(rig.status().timed_out, count as u64);
}

#[test]
fn more_waiters_than_one_round_handles_are_told_in_the_next() {
    let (mut rig, _) = Rig::dry();
    let count = if cfg!(miri) { 300 } else { 10_000 };
    let late: Vec<_> = (0..count).map(|_| rig.wait(Some(STEP))).collect();
    let mut next = late[0].alarm;
    let mut rounds = 0;

    while let Some(at) = next {
        next = rig.alarm(at);
        rounds += 1;
        assert!(rounds <= count, "it never rests");
    }

    assert!(late.iter().all(|waiter| waiter.wakes() == 1));
    let mut reports: Vec<_> = late.iter().map(|waiter| waiter.timeout().seen).collect();
    reports.dedup_by(|one, other| Arc::ptr_eq(one, other));
    assert_eq!(reports.len(), rounds, "one report for each round");
    let status = rig.status();
    assert_eq!((status.timed_out, status.waiting), (count as u64, 0));
    assert_eq!(status.wait_time, STEP * count as u32);
}

#[test]
fn an_unclaimed_grant_is_revoked_at_the_deadline_and_goes_to_the_next_waiter() {
    let (mut rig, lent) = Rig::dry();
    let began = rig.now;
    let [sleeper, next] = rig.crowd(STEP, [2, 5]);
    rig.now += STEP;
    let _ = rig.give_back(lent);
    assert!(sleeper.has_mail());

    rig.sleep_until(began + 2 * STEP);

    let over = sleeper.timeout();
    assert_eq!(over.waited(), 2 * STEP, "since it began to wait");
    assert_eq!(sleeper.wakes(), 1, "it was woken for the grant");
    assert_eq!((next.wakes(), next.claim().slot), (1, lent));
    let status = rig.status();
    assert_eq!((status.timed_out, status.acquired), (1, 2));
    assert_eq!(status.wait_time, 4 * STEP, "two steps each");
}

#[test]
fn an_unclaimed_grant_is_revoked_although_no_other_waiter_is_left() {
    let (mut rig, lent) = Rig::dry();
    let sleeper = rig.wait(Some(2 * STEP));
    let _ = rig.give_back(lent);

    rig.sleep_until(rig.now + 2 * STEP);

    let _ = sleeper.timeout();
    assert_eq!((rig.status().idle, rig.status().in_use), (1, 0));
    assert_eq!(rig.ledger.alarm_at, None, "nothing is left to be told");
}

#[test]
fn a_grant_that_was_claimed_is_not_revoked_at_the_deadline() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(Some(2 * STEP));
    let _ = rig.give_back(lent);
    let _ = waiter.claim();

    rig.sleep_until(rig.now + 3 * STEP);

    assert!(!waiter.has_mail());
    assert_eq!((rig.status().in_use, rig.status().timed_out), (1, 0));
}

#[test]
fn an_unclaimed_grant_has_a_holder_that_has_not_taken_it() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(None);
    let claimed = |rig: &Rig| {
        let holders = rig.ledger.holders(rig.now);
        let claimed: Vec<_> = holders.iter().map(|holder| holder.claimed).collect();
        claimed
    };
    assert_eq!(claimed(&rig), [true]);
    let _ = rig.give_back(lent);
    rig.now += STEP;

    assert_eq!(claimed(&rig), [false]);
    let holder = &rig.ledger.holders(rig.now)[0];
    assert_eq!((holder.held_for, holder.id), (STEP, 1));
    assert_eq!(rig.status().acquired, 1, "it is not acquired yet");
    let _ = waiter.claim();
    assert_eq!(claimed(&rig), [true]);
    assert_eq!(rig.status().acquired, 2);
}

#[test]
fn a_grant_that_is_never_claimed_is_a_leak_from_its_grant_on() {
    let mut rig = Rig::new(Config {
        leak_after: Some(30 * SECOND),
        ..of_size(1)
    });
    let lent = rig.lend_new().slot;
    let _sleeper = rig.wait(None);
    rig.now += 10 * SECOND;
    let _ = rig.give_back(lent);
    let leaks = |rig: &mut Rig| rig.ledger.upkeep(rig.now).0.leaked.len();

    rig.now += 29 * SECOND;
    assert_eq!(leaks(&mut rig), 0);
    rig.now += SECOND;

    assert_eq!(leaks(&mut rig), 1);
    assert_eq!(leaks(&mut rig), 0, "told once");
}

#[test]
fn revoked_probes_never_add_up_to_more_than_allowed() {
    let mut rig = Rig::new(Config {
        probes: 2,
        ..of_size(4)
    });
    rig.stock(4);
    for state in [BreakerState::Inactive, BreakerState::Recovering] {
        let _ = rig.ledger.set_breaker(None, state, rig.now);
    }
    rig.ledger.suspend();
    let (sleeper, holder) = (rig.wait(Some(STEP)), rig.wait(None));
    let overdue = rig.wait(Some(STEP));
    let others = [(); 4].map(|()| rig.wait(None));
    let _ = rig.ledger.resume(rig.now);
    assert!(sleeper.has_mail() && !overdue.has_mail(), "two probes");
    let lent = holder.claim().slot;
    // The alarm is late.
    rig.now += 2 * STEP;

    let _ = rig.give_back(lent);

    let granted = others.iter().filter(|waiter| waiter.has_mail());
    assert_eq!(granted.count(), 2, "as many as may be out at once");
    assert_eq!(rig.status().timed_out, 2);
}
