//! The health of the pool: unproven, healthy, busy, stuck or down.

use super::*;
use crate::status::Health;

fn health(rig: &Rig) -> Health {
    rig.ledger.health(rig.now)
}

/// Callers come one after another, each waits until it times out, and none is served.
fn call_for(rig: &mut Rig, limit: Duration, calls: usize) {
    for _ in 0..calls {
        let waiter = rig.wait(Some(limit));
        let deadline = rig.now + limit;
        rig.sleep_until(deadline);
        waiter.timeout();
    }
}

#[test]
fn a_pool_that_never_opened_anything_is_unproven() {
    let mut rig = Rig::new(Config::default());
    assert_eq!(health(&rig), Health::Unproven);
    let waiter = rig.wait(None);
    assert_eq!(
        health(&rig),
        Health::Unproven,
        "the first open is under way"
    );

    rig.open();

    let slot = waiter.claim().slot;
    assert_eq!(health(&rig), Health::Healthy);
    rig.detach(slot);
    assert_eq!(health(&rig), Health::Healthy, "it was proven once");
}

#[test]
fn a_pool_with_the_default_settings_is_stuck_although_each_waiter_times_out() {
    let config = Config {
        max_size: 1,
        ..Config::default()
    };
    let limit = config.acquire_timeout.expect("it is on");
    let stuck_after = config.stuck_after;
    let mut rig = Rig::new(config);
    let _leaked = rig.lend_new();
    let first = rig.wait(Some(limit));
    rig.sleep_until(rig.now + stuck_after - Duration::from_millis(1));
    assert_eq!(health(&rig), Health::Busy, "not yet");

    rig.sleep_until(rig.now + Duration::from_millis(1));
    first.timeout();
    call_for(&mut rig, limit, 2);

    let silent_for = stuck_after + 2 * limit;
    assert_eq!(health(&rig), Health::Stuck { silent_for });
}

#[test]
fn a_timeout_does_not_end_the_silence() {
    let mut rig = Rig::new(of_size(1));
    let _leaked = rig.lend_new();

    call_for(&mut rig, SECOND, 4);
    assert_eq!(health(&rig), Health::Busy);
    call_for(&mut rig, SECOND, 1);

    let silent_for = 5 * SECOND;
    assert_eq!(health(&rig), Health::Stuck { silent_for });
}

#[test]
fn a_return_ends_the_silence() {
    let mut rig = Rig::new(of_size(2));
    let (lent, _leaked) = (rig.lend_new(), rig.lend_new());
    let _waiters = [(); 3].map(|()| rig.wait(None));
    rig.now += 10 * SECOND;
    assert!(matches!(health(&rig), Health::Stuck { .. }));

    rig.give_back(lent.slot);

    assert_eq!(health(&rig), Health::Busy);
}

#[test]
fn a_pool_is_not_stuck_before_a_caller_has_waited() {
    let (mut rig, _) = Rig::exhausted();
    rig.now += 3600 * SECOND;
    assert_eq!(health(&rig), Health::Busy, "a long lease alone is no fault");

    let waiter = rig.wait(None);
    rig.now += 4 * SECOND;

    assert_eq!(health(&rig), Health::Busy);
    rig.now += SECOND;
    let silent_for = 5 * SECOND;
    assert_eq!(health(&rig), Health::Stuck { silent_for });
    rig.withdraw(&waiter);
    assert!(matches!(health(&rig), Health::Stuck { .. }), "it gave up");
}

#[test]
fn the_silence_ends_when_no_caller_has_wanted_anything_for_a_while() {
    let (mut rig, _) = Rig::exhausted();
    call_for(&mut rig, SECOND, 6);
    assert!(matches!(health(&rig), Health::Stuck { .. }));

    rig.now += 5 * SECOND;

    assert_eq!(health(&rig), Health::Busy, "no caller is left");
    let _waiter = rig.wait(None);
    rig.now += 4 * SECOND;
    assert_eq!(health(&rig), Health::Busy, "it counts from this one on");
    rig.now += SECOND;
    let silent_for = 5 * SECOND;
    assert_eq!(health(&rig), Health::Stuck { silent_for });
}

#[test]
fn a_suspended_pool_is_not_stuck() {
    let (mut rig, _) = Rig::exhausted();
    let _waiter = rig.wait(None);
    rig.ledger.suspend();

    rig.now += 60 * SECOND;

    assert_eq!(health(&rig), Health::Busy);
}

/// A slot that is reserved for an open does not make the pool look alive.
#[test]
fn a_pool_whose_next_open_does_not_begin_is_stuck() {
    let mut rig = Rig::new(Config {
        open_timeout: None,
        ..of_size(3)
    });
    let _lent = rig.lend_new();
    let _waiter = rig.wait(None);
    let _begun = rig.begin_opens();

    rig.now += 60 * SECOND;
    let _late = rig.wait(None);

    let silent_for = 60 * SECOND;
    assert_eq!(health(&rig), Health::Stuck { silent_for });
}

#[test]
fn a_pool_whose_opens_hang_is_down_from_the_first_timeout_on() {
    let mut rig = Rig::new(Config {
        open_timeout: None,
        ..of_size(2)
    });
    let waiter = rig.wait(Some(SECOND));
    let hung = rig.begin_opens()[0];
    assert_eq!(health(&rig), Health::Unproven);

    rig.sleep_until(rig.now + SECOND);

    assert_eq!(waiter.timeout().phase, Phase::Opening);
    let down_for = Duration::ZERO;
    assert_eq!(health(&rig), Health::Down { down_for });
    rig.now += SECOND;
    let down_for = SECOND;
    assert_eq!(health(&rig), Health::Down { down_for });
    rig.opened(hung);
    assert_eq!(health(&rig), Health::Healthy, "it came after all");
}

#[test]
fn a_pool_whose_opens_hang_is_down_after_half_of_open_timeout() {
    let mut rig = Rig::new(Config {
        open_timeout: Some(10 * SECOND),
        ..of_size(2)
    });
    let began = rig.now;
    let _waiter = rig.wait(None);
    let _hung = rig.begin_opens();
    rig.now = began + 5 * SECOND - Duration::from_nanos(1);
    assert_eq!(health(&rig), Health::Unproven);

    rig.now = began + 5 * SECOND;

    let down_for = 5 * SECOND;
    assert_eq!(health(&rig), Health::Down { down_for });
}

#[test]
fn a_pool_with_a_living_resource_is_not_down_because_another_open_hangs() {
    let mut rig = Rig::new(of_size(3));
    let _lent = rig.lend_new();
    let waiter = rig.wait(Some(SECOND));
    let _hung = rig.begin_opens();

    rig.sleep_until(rig.now + 2 * SECOND);

    waiter.timeout();
    assert_eq!(health(&rig), Health::Healthy);
}

#[test]
fn a_pool_is_not_down_because_an_open_was_too_slow_while_another_resource_lived() {
    let mut rig = Rig::new(of_size(2));
    let lent = rig.lend_new();
    let waiter = rig.wait(Some(SECOND));
    let slow = rig.begin_opens()[0];
    rig.sleep_until(rig.now + SECOND);
    assert_eq!(waiter.timeout().phase, Phase::Opening);
    rig.call(|ledger, now, orders| ledger.lost(slow, now, orders));

    rig.detach(lent.slot);

    assert_eq!(health(&rig), Health::Healthy, "no open has failed");
}

#[test]
fn a_pool_is_not_down_because_a_caller_timed_out_while_it_was_suspended() {
    let mut rig = Rig::new(of_size(1));
    let lent = rig.lend_new();
    rig.detach(lent.slot);
    rig.ledger.suspend();
    let waiter = rig.wait(Some(SECOND));

    rig.sleep_until(rig.now + SECOND);

    assert_eq!(waiter.timeout().phase, Phase::Suspended);
    assert_eq!(health(&rig), Health::Healthy, "no open has failed");
}

#[test]
fn a_pool_whose_opens_fail_is_down_until_one_succeeds() {
    let mut rig = Rig::new(of_size(2));
    let _waiter = rig.wait(None);
    let slot = rig.begin_opens()[0];

    rig.fail_open(slot);
    rig.now += SECOND;

    let down_for = SECOND;
    assert_eq!(health(&rig), Health::Down { down_for });
    let _second = rig.wait(None);
    rig.open();
    assert_eq!(health(&rig), Health::Healthy);
}

#[test]
fn a_pool_whose_open_ends_after_its_waiter_timed_out_is_healthy() {
    let mut rig = Rig::new(of_size(1));
    let waiter = rig.wait(Some(SECOND));
    let slot = rig.begin_opens()[0];
    // The alarm is late.
    rig.now += 2 * SECOND;

    rig.opened(slot);

    waiter.timeout();
    let lent = rig.lend();
    rig.detach(lent.slot);
    assert_eq!(health(&rig), Health::Healthy, "all opens succeeded");
}

/// Callers may stay away from a pool that is down, so it must find out by itself.
#[test]
fn a_pool_that_is_down_by_a_lost_open_tries_again_by_itself() {
    let mut rig = Rig::new(Config {
        open_timeout: None,
        ..of_size(1)
    });
    let waiter = rig.wait(Some(SECOND));
    let slot = rig.begin_opens()[0];
    rig.sleep_until(rig.now + SECOND);
    waiter.timeout();
    rig.call(|ledger, now, orders| ledger.lost(slot, now, orders));
    assert!(rig.orders.rings(), "upkeep is woken");

    rig.upkeep();

    assert_eq!(rig.open(), 1);
    assert_eq!(health(&rig), Health::Healthy);
}

#[test]
fn a_resource_that_is_being_closed_is_none_of_min_size() {
    let config = Config {
        min_size: 1,
        ..of_size(2)
    };
    let mut rig = Rig::new(config);
    let lent = rig.lend_new();

    rig.give_back_as(lent.slot, Condition::Discarded);
    assert!(matches!(rig.only_work().job, Job::Close { .. }));
    rig.upkeep();

    assert_eq!(rig.begin_opens().len(), 1, "another one takes its place");
}

#[test]
fn a_detached_resource_is_not_released() {
    let mut rig = Rig::new(of_size(2));
    let (detached, lent) = (rig.lend_new(), rig.lend_new());

    rig.detach(detached.slot);
    rig.give_back(lent.slot);

    assert_eq!(rig.status().released, 1);
}
