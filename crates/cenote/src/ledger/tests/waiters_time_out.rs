//! Waiters time out: when the alarm is set, what a round of it does, and when upkeep stands in.

use super::*;

const STEP: Duration = Duration::from_millis(100);

#[test]
fn the_alarm_is_set_for_the_first_waiter_and_for_each_with_an_earlier_deadline() {
    let (mut rig, _) = Rig::exhausted();
    let now = rig.now;

    let set = [5, 7, 5, 3, 4].map(|after| rig.wait(Some(after * STEP)).alarm);

    let expected = [Some(now + 5 * STEP), None, None, Some(now + 3 * STEP), None];
    assert_eq!(set, expected);
}

#[test]
fn a_waiter_with_much_time_is_asked_to_look_again_before_its_deadline() {
    let (mut rig, _) = Rig::exhausted();
    let now = rig.now;

    let waiter = rig.wait(Some(3 * HELD_UP_AFTER));

    assert_eq!(waiter.alarm, Some(now + HELD_UP_AFTER));
    let next = rig.alarm(now + HELD_UP_AFTER);
    assert_eq!((waiter.wakes(), waiter.has_mail()), (1, false));
    assert_eq!(next, Some(now + 2 * HELD_UP_AFTER));
}

#[test]
fn a_waiter_without_a_deadline_is_asked_to_look_again_too() {
    let (mut rig, _) = Rig::exhausted();
    let waiter = rig.wait(None);

    rig.alarm(rig.now + HELD_UP_AFTER);

    assert_eq!(waiter.alarm, Some(rig.now));
    assert_eq!((waiter.wakes(), waiter.has_mail()), (1, false));
}

#[test]
fn an_alarm_that_is_held_up_is_set_again_once_and_not_by_every_caller() {
    let (mut rig, _) = Rig::exhausted();
    let held_up = rig.wait(Some(STEP)).alarm.expect("it is set");
    rig.now = held_up + 2 * MISSED;

    let set = [1, 2, 3].map(|after| rig.wait(Some(after * STEP)).alarm);

    assert_eq!(set, [Some(rig.now), None, None]);
    assert_eq!(rig.alarm(rig.now), Some(rig.now + STEP));
}

#[test]
fn a_waiter_that_was_asked_to_look_and_did_not_is_not_woken_again_for_its_outcome() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(None);
    rig.alarm(rig.now + HELD_UP_AFTER);

    rig.give_back(lent);

    assert_eq!(waiter.wakes(), 1, "its wake-up is under way");
    assert_eq!(waiter.claim().slot, lent);
}

#[test]
fn a_round_times_out_every_waiter_that_is_due_and_no_other() {
    let (mut rig, _) = Rig::exhausted();
    let now = rig.now;
    let waiters = rig.crowd(STEP, [2, 1, 3, 1]);

    let next = rig.alarm(now + STEP);

    let has_mail = waiters.each_ref().map(Waiter::has_mail);
    assert_eq!(has_mail, [false, true, false, true]);
    let wakes = waiters.each_ref().map(Waiter::wakes);
    assert_eq!(wakes, [0, 1, 0, 1]);
    assert_eq!(next, Some(now + 2 * STEP));
}

#[test]
fn waiters_that_time_out_in_one_round_share_one_report() {
    let (mut rig, _) = Rig::exhausted();
    let waiters = rig.crowd(STEP, [2, 1, 3, 1, 1]);

    rig.alarm(rig.now + STEP);

    let timed_out = [1, 3, 4].map(|nth| waiters[nth].timeout());
    for one in &timed_out {
        assert!(Arc::ptr_eq(&one.seen, &timed_out[0].seen));
        assert_eq!(one.waited(), STEP);
    }
    let waiting = timed_out[0].seen.status.waiting;
    assert_eq!(waiting, 5, "as it was before they left");
    let status = rig.status();
    assert_eq!((status.timed_out, status.waiting), (3, 2));
    assert_eq!(status.wait_time, 3 * STEP);
    rig.alarm(rig.now + STEP);
    let later = waiters[0].timeout();
    assert!(
        !Arc::ptr_eq(&later.seen, &timed_out[0].seen),
        "another round"
    );
}

#[test]
fn each_waiter_learns_what_it_was_waiting_for() {
    let (mut rig, _) = Rig::exhausted();
    rig.call(|ledger, now, orders| ledger.resize(2, now, orders));
    let waiters = rig.crowd(STEP, [1, 1, 1]);
    assert_eq!(rig.begin_opens(), [1]);

    rig.alarm(rig.now + STEP);

    let phases = waiters.map(|waiter| waiter.timeout().phase);
    assert_eq!(phases, [Phase::Opening, Phase::Queued, Phase::Queued]);
}

#[test]
fn a_waiter_that_looks_after_its_deadline_times_out_without_the_alarm() {
    let (mut rig, _) = Rig::exhausted();
    let waiters = rig.crowd(STEP, [1, 1]);
    rig.now += STEP;

    assert!(!rig.look(&waiters[0]));

    assert_eq!(waiters[0].timeout().waited(), STEP);
    assert!(!waiters[1].has_mail(), "the alarm will tell it");
    assert_eq!(rig.status().timed_out, 1);
}

#[test]
fn an_alarm_that_was_overtaken_does_nothing() {
    let (mut rig, _) = Rig::exhausted();
    let late = rig.wait(Some(2 * STEP)).alarm.expect("it is the first");
    let soon = rig.wait(Some(STEP)).alarm.expect("it is sooner");

    assert_eq!(rig.alarm(late), None, "it was overtaken");

    assert_eq!(rig.status().timed_out, 0);
    assert_eq!(rig.alarm(soon), None);
    assert_eq!(rig.status().timed_out, 2);
}

#[test]
fn a_waiter_that_left_or_was_served_does_not_time_out() {
    let (mut rig, lent) = Rig::exhausted();
    let [served, gone, waits] = rig.crowd(STEP, [1, 1, 1]);
    rig.give_back(lent);
    served.claim();
    rig.withdraw(&gone);

    rig.alarm(served.alarm.expect("it is the first"));

    let wakes = [&served, &gone, &waits].map(Waiter::wakes);
    assert_eq!(wakes, [1, 0, 1]);
    let has_mail = [served, gone, waits].map(|waiter| waiter.has_mail());
    assert_eq!(has_mail, [false, false, true]);
}

#[test]
fn a_waiter_that_leaves_before_it_reads_its_timeout_counts_as_timed_out() {
    let (mut rig, _) = Rig::exhausted();
    let [waiter] = rig.crowd(STEP, [1]);
    rig.alarm(rig.now + STEP);

    rig.withdraw(&waiter);

    assert!(!waiter.has_mail());
    let status = rig.status();
    assert_eq!((status.timed_out, status.cancelled), (1, 0));
}

#[test]
fn an_alarm_that_did_not_go_off_is_set_anew_for_the_first_deadline() {
    let (mut rig, _) = Rig::exhausted();
    let began = rig.now;
    let alarms = rig.crowd(STEP, [1, 3]).map(|waiter| waiter.alarm);
    assert_eq!(alarms, [Some(began + STEP), None]);
    rig.now = began + STEP + Duration::from_millis(5);
    assert_eq!(rig.wait(Some(9 * STEP)).alarm, None, "it may be just late");
    rig.now = began + STEP + Duration::from_millis(11);

    let third = rig.wait(Some(9 * STEP));

    let at = third.alarm.expect("it was missed");
    assert!(at <= rig.now, "a deadline has passed already");
    assert_eq!(rig.alarm(at), Some(began + 3 * STEP));
    assert_eq!(rig.status().timed_out, 1);
}

#[test]
fn a_waiter_that_looks_sets_an_alarm_that_was_missed() {
    let (mut rig, _) = Rig::exhausted();
    let waiter = rig.wait(Some(30 * STEP));
    rig.now += HELD_UP_AFTER + STEP;

    assert!(rig.look(&waiter));

    let at = rig.orders.alarm().expect("it was missed");
    assert!(at <= rig.now, "a look was due before");
    assert_eq!(rig.alarm(at), Some(rig.now + HELD_UP_AFTER));
    assert_eq!(waiter.wakes(), 1);
    rig.look(&waiter);
    assert_eq!(rig.orders.alarm(), None, "it is set");
}

#[test]
fn an_alarm_that_is_forgotten_is_set_by_the_next_waiter() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(Some(5 * STEP));
    rig.give_back(lent);
    waiter.claim();
    assert!(rig.ledger.is_alarm_set());
    assert_eq!(
        rig.wait(Some(7 * STEP)).alarm,
        None,
        "it is set for earlier"
    );

    rig.ledger.forget_alarm();

    let at = rig.wait(Some(9 * STEP)).alarm;
    let first = rig.now + 5 * STEP;
    assert_eq!(at, Some(first), "for the first deadline of all");
    assert_eq!(rig.wait(Some(9 * STEP)).alarm, None);
}

#[test]
fn an_alarm_that_was_never_set_is_not_set_by_forgetting_it() {
    let (mut rig, _) = Rig::exhausted();

    rig.ledger.forget_alarm();

    assert!(!rig.ledger.is_alarm_set());
}

/// The alarm does not go off on a paused clock, or while a waker blocks its thread.
#[test]
fn upkeep_stands_in_for_an_alarm_that_is_held_up() {
    let (mut rig, _) = Rig::exhausted();
    let late = Duration::from_millis(10);
    let [first, second] = rig.crowd(STEP, [1, 3]);
    let began = rig.now;
    let before = rig.upkeep();
    assert_eq!(before.next, Some(began + STEP + late), "it wakes in time");
    rig.now = began + STEP;
    rig.upkeep();
    assert!(!first.has_mail(), "the alarm may be just late");
    rig.now = began + STEP + late;

    let upkeep = rig.upkeep();

    assert!(first.has_mail() && !second.has_mail());
    assert_eq!(first.wakes(), 1);
    let alarm = rig.orders.alarm();
    assert_eq!(alarm, Some(began + 3 * STEP), "it is set anew");
    assert_eq!(upkeep.next, Some(began + 3 * STEP + late), "no spinning");
    rig.now = began + 3 * STEP + late;
    let upkeep = rig.upkeep();
    assert!(second.has_mail());
    assert_eq!(
        upkeep.next,
        Some(rig.now + 30 * SECOND),
        "no waiter is left"
    );
}

#[test]
fn upkeep_stands_in_for_a_deadline_that_did_not_set_the_alarm() {
    let (mut rig, _) = Rig::exhausted();
    let _looks = rig.wait(None);
    assert!(
        rig.ledger.alarm_at < Some(rig.now + 20 * STEP),
        "for a look"
    );

    rig.wait(Some(20 * STEP));

    assert!(rig.orders.rings() && rig.orders.alarm().is_none());
    assert_eq!(rig.ledger.wakes_at, Some(rig.now + 20 * STEP + MISSED));
}

#[test]
fn a_waiter_that_sets_the_alarm_wakes_upkeep_to_stand_in_for_it() {
    let (mut rig, _) = Rig::exhausted();
    rig.upkeep();

    rig.wait(Some(STEP));

    assert!(rig.orders.rings() && rig.orders.alarm().is_some());
}
