//! Threads that read the clock in one order and get the lock in another.

use super::*;

/// A thread that reads the clock before another one may get the lock after it.
#[test]
fn a_clock_that_was_read_early_breaks_no_invariant() {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(2 * SECOND),
        ..of_size(3)
    });
    let early = rig.now;
    let lent = [(); 3].map(|()| rig.wait(None));
    rig.open();
    let [first, second, granted] = lent;
    for waiter in [first, second] {
        let slot = waiter.claim().slot;
        let _ = rig.give_back(slot);
    }
    rig.now = early + 3 * SECOND;
    let waits = rig.wait(None);
    assert!(!waits.has_mail(), "both idle ones must be checked first");
    rig.now = early;

    let slot = granted.claim().slot;
    let _ = rig.give_back(slot);

    assert_eq!(waits.claim().slot, slot);
}

/// A resource that was open, or being opened, when everything was invalidated must go, also if the
/// thread that brings it read the clock before.
#[test]
fn an_invalidated_resource_is_closed_whenever_the_clock_was_read_that_it_comes_back_by() {
    let mut rig = Rig::new(Config::default());
    let early = rig.now;
    let lent = rig.lend_new();
    let _waiter = rig.wait(None);
    let opening = rig.begin_opens()[0];

    let late = early + Duration::from_millis(4);
    let _ = rig.ledger.invalidate(Duration::ZERO, late);
    let _ = rig.give_back(lent.slot);
    let _ = rig.opened(opening);

    let closed: Vec<_> = rig
        .owed()
        .into_iter()
        .filter_map(|work| match work {
            Work::Close { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [Reason::Invalidated; 2]);
}

#[test]
fn a_deadline_is_judged_by_the_clock_of_the_thread_that_has_the_lock() {
    let (mut rig, lent) = Rig::dry();
    let waiter = rig.wait(Some(SECOND));
    rig.now += SECOND - Duration::from_nanos(1);

    let _ = rig.give_back(lent);

    assert_eq!(waiter.claim().slot, lent, "there was time left");
}
