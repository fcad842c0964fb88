//! Checked before lent: after one resource was found dead, the others must prove that they live.

use super::*;

/// A pool with so many idle resources, each of them just used.
fn proven(idle: usize) -> Rig {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(3600 * SECOND),
        ..of_size(idle + 2)
    });
    rig.stock(idle);
    rig.now += SECOND;
    rig
}

/// The slots for which a check is owed.
fn checked(rig: &mut Rig) -> Vec<SlotNo> {
    let owed = rig.owed().into_iter();
    let mut checked: Vec<_> = owed
        .filter_map(|work| match work.job {
            Job::Vet { check, .. } => {
                assert!(check, "it was to be checked");
                Some(work.slot)
            }
            Job::Open | Job::Clean { .. } | Job::Close { .. } => None,
        })
        .collect();
    checked.sort_unstable();
    checked
}

#[test]
fn a_proven_resource_is_lent_without_a_check() {
    let mut rig = proven(3);

    assert!(rig.try_lend().is_some());

    assert!(checked(&mut rig).is_empty());
}

#[test]
fn a_broken_return_makes_every_other_resource_unproven() {
    for condition in [Condition::Broken, Condition::Dead] {
        let mut rig = proven(3);
        let lent = rig.lend();

        rig.give_back_as(lent.slot, condition);

        assert!(rig.try_lend().is_none(), "{condition:?}");
        assert_eq!(checked(&mut rig).len(), 2, "{condition:?}");
    }
}

#[test]
fn a_failed_check_makes_every_other_resource_unproven() {
    let mut rig = proven(3);
    let slot = rig.take_coldest();

    rig.judged(slot, Outcome::Unfit(CloseReason::FailedCheck));

    assert!(rig.try_lend().is_none());
    assert_eq!(checked(&mut rig).len(), 2);
}

#[test]
fn a_failed_open_makes_every_resource_unproven() {
    let mut rig = proven(2);
    let lent = [rig.lend(), rig.lend()];
    let waiter = rig.wait(None);
    let opening = rig.begin_opens()[0];
    rig.withdraw(&waiter);
    for grant in lent {
        rig.give_back(grant.slot);
    }
    rig.now += SECOND;

    rig.fail_open(opening);

    assert!(rig.try_lend().is_none());
    assert_eq!(checked(&mut rig).len(), 2);
}

#[test]
fn a_resource_that_was_refused_or_discarded_leaves_the_others_proven() {
    let mut rig = proven(3);
    let slot = rig.take_coldest();
    rig.judged(slot, Outcome::Unfit(CloseReason::Refused));
    let lent = rig.lend();

    rig.give_back_as(lent.slot, Condition::Discarded);

    assert!(rig.try_lend().is_some());
    assert!(checked(&mut rig).is_empty());
}

#[test]
fn a_resource_that_comes_back_in_good_condition_afterwards_is_lent_without_a_check() {
    let mut rig = proven(2);
    let (first, out) = (rig.lend(), rig.lend());
    rig.give_back_as(first.slot, Condition::Broken);
    rig.now += SECOND;

    rig.give_back(out.slot);

    assert_eq!(rig.try_lend().map(|grant| grant.slot), Some(out.slot));
    assert!(checked(&mut rig).is_empty());
}

#[test]
fn a_resource_that_passes_its_check_is_lent_without_another_one() {
    let mut rig = proven(2);
    let lent = rig.lend();
    rig.give_back_as(lent.slot, Condition::Broken);
    let slot = checked(&mut rig)[0];
    rig.now += SECOND;

    rig.judged(slot, Outcome::Fit);

    assert_eq!(rig.try_lend().map(|grant| grant.slot), Some(slot));
}

#[test]
fn a_resource_that_is_taken_off_its_tray_was_proven_when_it_was_last_laid_back() {
    let mut rig = Rig::with_trays(
        Config {
            check_after_idle: Some(3600 * SECOND),
            ..of_size(2)
        },
        2,
    );
    rig.stock(2);
    let (on_tray, tray) = rig.lend_on_tray();
    let lent = rig.lend();
    let laid_back = rig.now;
    rig.now += SECOND;

    rig.clear_tray(tray.expect("there are trays"), |off| {
        off.resource = Some(on_tray);
        off.used_at = laid_back;
    });
    rig.give_back_as(lent.slot, Condition::Broken);

    assert!(rig.try_lend().is_none());
    assert_eq!(checked(&mut rig), [on_tray.slot]);
}

/// A resource that is off the shelf when another is found dead cannot be checked at once.
#[test]
fn a_resource_that_is_put_back_after_another_was_found_dead_is_unproven() {
    let mut rig = proven(2);
    let lent = rig.lend();
    let slot = rig.take_coldest();
    rig.give_back_as(lent.slot, Condition::Broken);
    assert!(checked(&mut rig).is_empty());
    rig.now += SECOND;

    rig.put_back(slot);

    assert!(rig.try_lend().is_none());
    assert_eq!(checked(&mut rig), [slot]);
}

#[test]
fn a_grant_that_was_not_claimed_when_another_resource_was_found_dead_is_unproven() {
    let mut rig = proven(2);
    let (first, second) = (rig.lend(), rig.lend());
    rig.call(|ledger, now, orders| ledger.resize(2, now, orders));
    let waiter = rig.wait(None);
    rig.give_back(first.slot);
    rig.now += SECOND;
    rig.give_back_as(second.slot, Condition::Broken);
    rig.now += SECOND;

    rig.withdraw(&waiter);

    assert!(rig.try_lend().is_none());
    assert_eq!(checked(&mut rig), [first.slot]);
}

#[test]
fn a_pool_that_never_checks_does_not_check_after_a_broken_return_either() {
    let mut rig = Rig::new(of_size(2));
    rig.stock(2);
    let lent = rig.lend();

    rig.give_back_as(lent.slot, Condition::Broken);

    assert!(rig.try_lend().is_some());
}

/// A request looks at the most recently used part of the shelf only. When a resource leaves that
/// part for its check, the next one comes into view.
#[test]
fn a_fit_resource_behind_others_that_must_be_checked_goes_to_the_waiter() {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(10 * SECOND),
        ..of_size(9)
    });
    rig.stock(9);
    let lent: Vec<_> = (0..9).map(|_| rig.lend().slot).collect();
    for slot in lent {
        rig.now += Duration::from_millis(1);
        rig.give_back(slot);
    }
    rig.now += 9 * SECOND;
    let coldest = rig.take_coldest();
    rig.judged(coldest, Outcome::Fit);
    rig.now += 2 * SECOND;

    let waiter = rig.wait(None);

    assert_eq!(waiter.claim().slot, coldest);
}
