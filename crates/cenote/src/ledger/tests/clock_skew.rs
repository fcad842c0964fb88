//! Threads that read the clock in one order and get the lock in another.

use super::*;

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
        rig.give_back(slot);
    }
    rig.now = early + 3 * SECOND;
    let waits = rig.wait(None);
    assert!(!waits.has_mail(), "both idle ones must be checked first");
    rig.now = early;

    let slot = granted.claim().slot;
    rig.give_back(slot);

    assert_eq!(waits.claim().slot, slot);
}

#[test]
fn an_invalidated_resource_is_closed_although_its_thread_read_the_clock_before() {
    let mut rig = Rig::new(Config::default());
    let early = rig.now;
    let lent = rig.lend_new();
    let _waiter = rig.wait(None);
    let opening = rig.begin_opens()[0];

    let late = early + Duration::from_millis(4);
    rig.call(|ledger, _, orders| ledger.invalidate(Duration::ZERO, late, orders));
    rig.give_back(lent.slot);
    rig.opened(opening);

    let closed: Vec<_> = rig
        .owed()
        .into_iter()
        .filter_map(|work| match work.job {
            Job::Close { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [CloseReason::Invalidated; 2]);
}

#[test]
fn a_deadline_is_judged_by_the_clock_of_the_thread_that_has_the_lock() {
    let (mut rig, lent) = Rig::exhausted();
    let waiter = rig.wait(Some(SECOND));
    rig.now += SECOND - Duration::from_nanos(1);

    rig.give_back(lent);

    assert_eq!(waiter.claim().slot, lent, "there was time left");
}
