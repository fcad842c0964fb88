//! Waiters that are not polled in time: the resource that they would have got goes to the next.

use super::*;

const STEP: Duration = Duration::from_millis(100);

#[test]
fn a_waiter_whose_deadline_has_passed_is_granted_nothing() {
    let (mut rig, lent) = Rig::exhausted();
    let [late, also_late, timely] = rig.crowd(STEP, [1, 1, 3]);
    // The alarm is late.
    rig.now += 2 * STEP;

    rig.give_back(lent);

    assert_eq!(timely.claim().slot, lent);
    for waiter in [&late, &also_late] {
        assert_eq!(waiter.timeout().waited(), 2 * STEP);
        assert_eq!(waiter.wakes(), 1);
    }
    assert_eq!(rig.status().timed_out, 2);
}

#[test]
fn a_resource_goes_to_the_shelf_if_every_waiter_is_overdue() {
    let (mut rig, lent) = Rig::exhausted();
    let waiters = rig.crowd(STEP, [1, 2]);
    rig.now += 2 * STEP;

    rig.give_back(lent);

    assert!(waiters.iter().all(Waiter::has_mail));
    assert_eq!((rig.status().idle, rig.status().waiting), (1, 0));
}

#[test]
fn a_caller_without_any_time_is_queued_and_times_out_at_once() {
    let (mut rig, _) = Rig::exhausted();

    let waiter = rig.wait(Some(Duration::ZERO));

    assert!(!rig.look(&waiter));
    assert_eq!(waiter.timeout().waited(), Duration::ZERO);
}

/// One round of timeouts handles fewer waiters than these.
#[test]
fn no_overdue_waiter_is_granted_anything_however_many_there_are() {
    let (mut rig, lent) = Rig::exhausted();
    let late: Vec<_> = (0..CROWD).map(|_| rig.wait(Some(STEP))).collect();
    let timely = rig.wait(Some(3 * STEP));
    rig.now += 2 * STEP;

    rig.give_back(lent);

    let timed_out = late.iter().filter(|waiter| waiter.has_mail());
    let timed_out = timed_out.map(Waiter::timeout).count();
    assert_eq!(timed_out, CROWD, "each has its timeout, and not a grant");
    assert!(late.iter().all(|waiter| waiter.wakes() == 1));
    assert_eq!(timely.claim().slot, lent);
    assert_eq!(rig.status().timed_out, CROWD as u64);
}

#[test]
fn more_waiters_than_one_round_handles_are_told_in_the_next() {
    let (mut rig, _) = Rig::exhausted();
    let late: Vec<_> = (0..CROWD).map(|_| rig.wait(Some(STEP))).collect();
    let mut next = late[0].alarm;
    let mut rounds = 0;

    while let Some(at) = next {
        next = rig.alarm(at);
        rounds += 1;
        assert!(rounds <= CROWD, "it never rests");
    }

    assert!(late.iter().all(|waiter| waiter.wakes() == 1));
    let mut reports: Vec<_> = late.iter().map(|waiter| waiter.timeout().seen).collect();
    reports.dedup_by(|one, other| Arc::ptr_eq(one, other));
    assert_eq!(reports.len(), rounds, "one report for each round");
    let status = rig.status();
    assert_eq!((status.timed_out, status.waiting), (CROWD as u64, 0));
    assert_eq!(status.wait_time, STEP * CROWD as u32);
}

#[test]
fn an_unclaimed_grant_is_revoked_at_the_deadline_and_goes_to_the_next_waiter() {
    let (mut rig, lent) = Rig::exhausted();
    let began = rig.now;
    let [sleeper, next] = rig.crowd(STEP, [2, 5]);
    rig.now += STEP;
    rig.give_back(lent);
    assert!(sleeper.has_mail());

    rig.sleep_until(began + 2 * STEP);

    let waited = sleeper.timeout().waited();
    assert_eq!(waited, 2 * STEP, "since it began to wait");
    assert_eq!(sleeper.wakes(), 1, "it was woken for the grant");
    assert_eq!((next.wakes(), next.claim().slot), (1, lent));
    let status = rig.status();
    assert_eq!((status.timed_out, status.acquired), (1, 2));
    assert_eq!(status.wait_time, 4 * STEP, "two steps each");
}

/// The resource is not offered to waiters that are overdue, because all of them would time out in
/// this round then.
#[test]
fn an_unclaimed_grant_is_revoked_when_every_overdue_waiter_has_timed_out() {
    let (mut rig, lent) = Rig::exhausted();
    let sleeper = rig.wait(Some(STEP));
    let mut late: Vec<_> = (0..CROWD).map(|_| rig.wait(Some(STEP))).collect();
    rig.give_back(lent);
    let mut next = sleeper.alarm;
    let mut rounds = 0;

    while let Some(at) = next {
        next = rig.alarm(at);
        rounds += 1;
        assert!(rounds <= CROWD, "it never rests");
    }

    late.push(sleeper);
    let mut reports: Vec<_> = late.iter().map(|waiter| waiter.timeout().seen).collect();
    reports.dedup_by(|one, other| Arc::ptr_eq(one, other));
    assert_eq!(reports.len(), rounds, "one report for each round");
    assert_eq!((rig.status().idle, rig.status().waiting), (1, 0));
}

#[test]
fn an_unclaimed_grant_is_revoked_although_no_waiter_is_queued() {
    let (mut rig, lent) = Rig::exhausted();
    let sleeper = rig.wait(Some(2 * STEP));
    rig.give_back(lent);

    rig.sleep_until(rig.now + 2 * STEP);

    sleeper.timeout();
    assert_eq!((rig.status().idle, rig.status().in_use), (1, 0));
    assert_eq!(rig.ledger.alarm_at, None, "no deadline is left");
}

#[test]
fn a_grant_that_was_claimed_is_not_revoked_at_the_deadline() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(Some(2 * STEP));
    rig.give_back(lent);
    waiter.claim();

    rig.sleep_until(rig.now + 3 * STEP);

    assert!(!waiter.has_mail());
    assert_eq!((rig.status().in_use, rig.status().timed_out), (1, 0));
}

#[test]
fn an_unclaimed_grant_has_a_holder_that_has_not_claimed_it() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(None);
    let claimed = |rig: &Rig| {
        let holders = rig.ledger.holders(rig.now);
        let claimed: Vec<_> = holders.iter().map(|holder| holder.claimed).collect();
        claimed
    };
    assert_eq!(claimed(&rig), [true]);
    rig.give_back(lent);
    rig.now += STEP;

    assert_eq!(claimed(&rig), [false]);
    let holder = &rig.ledger.holders(rig.now)[0];
    assert_eq!((holder.held_for, holder.id), (STEP, 1));
    assert_eq!(rig.status().acquired, 1, "it is not acquired yet");
    waiter.claim();
    assert_eq!(claimed(&rig), [true]);
    assert_eq!(rig.status().acquired, 2);
}

#[test]
fn a_grant_that_is_never_claimed_counts_as_a_leak_since_it_was_made() {
    let mut rig = Rig::new(Config {
        leak_after: Some(30 * SECOND),
        ..of_size(1)
    });
    let lent = rig.lend_new().slot;
    let _sleeper = rig.wait(None);
    rig.now += 10 * SECOND;
    rig.give_back(lent);
    let leaks = |rig: &mut Rig| rig.upkeep().leaked.len();

    rig.now += 29 * SECOND;
    assert_eq!(leaks(&mut rig), 0);
    rig.now += SECOND;

    assert_eq!(leaks(&mut rig), 1);
    assert_eq!(leaks(&mut rig), 0, "it is reported once");
}

#[test]
fn no_more_probes_are_out_than_allowed_when_one_is_revoked() {
    let mut rig = Rig::new(Config {
        probes: 2,
        ..of_size(4)
    });
    rig.stock(4);
    rig.recover();
    rig.ledger.suspend();
    let (sleeper, holder) = (rig.wait(Some(STEP)), rig.wait(None));
    let overdue = rig.wait(Some(STEP));
    let others = [(); 4].map(|()| rig.wait(None));
    rig.call(Ledger::resume);
    assert!(sleeper.has_mail() && !overdue.has_mail(), "two probes");
    let granted = || others.iter().filter(|waiter| waiter.has_mail()).count();
    let lent = holder.claim().slot;
    // The alarm is late.
    rig.now += 2 * STEP;

    rig.give_back(lent);
    assert_eq!((granted(), rig.status().timed_out), (1, 1));
    let late = rig.now;
    rig.sleep_until(late);

    assert_eq!(granted(), 2, "as many as may be out at once");
    assert_eq!(rig.status().timed_out, 2);
}
