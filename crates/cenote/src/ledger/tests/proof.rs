//! Proof of life: after one resource was found dead, the others are checked before they are lent.

use super::*;

/// So many idle ones, each of them just used.
fn proven(idle: usize) -> Rig {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(3600 * SECOND),
        ..of_size(idle + 2)
    });
    rig.stock(idle);
    rig.now += SECOND;
    rig
}

/// The slots that are checked, and nothing else is owed for them.
fn checked(rig: &mut Rig) -> Vec<SlotNo> {
    let owed = rig.owed().into_iter();
    let mut checked: Vec<_> = owed
        .filter_map(|work| match work {
            Work::Vet {
                slot, check: true, ..
            } => Some(slot),
            Work::Vet { .. } => panic!("it was to be checked"),
            Work::Open { .. } | Work::Clean { .. } | Work::Close { .. } => None,
        })
        .collect();
    checked.sort_unstable();
    checked
}

fn try_lend(rig: &mut Rig) -> Option<Grant<Token>> {
    let mut orders = Orders::default();
    let answer = rig.ledger.try_request(asker(), rig.now, &mut orders);
    answer.expect("it is not refused")
}

#[test]
fn a_proven_resource_is_lent_without_a_check() {
    let mut rig = proven(3);

    assert!(try_lend(&mut rig).is_some());

    assert!(checked(&mut rig).is_empty());
}

#[test]
fn a_broken_return_makes_every_other_resource_unproven() {
    for condition in [Condition::Broken, Condition::Dead] {
        let mut rig = proven(3);
        let lent = rig.lend().0;

        let _ = rig.give_back_as(lent.slot, condition);

        assert!(try_lend(&mut rig).is_none(), "{condition:?}");
        assert_eq!(checked(&mut rig).len(), 2, "{condition:?}");
    }
}

#[test]
fn a_failed_check_makes_every_other_resource_unproven() {
    let mut rig = proven(3);
    let (slot, id) = rig.ledger.idle()[0];
    let token = rig.ledger.look_at(slot, id, rig.now).expect("it is idle");

    let unfit = Outcome::Unfit(Reason::FailedCheck);
    let _ = rig.ledger.judged(slot, token, unfit, rig.now);

    assert!(try_lend(&mut rig).is_none());
    assert_eq!(checked(&mut rig).len(), 2);
}

#[test]
fn a_failed_open_makes_every_resource_unproven() {
    let mut rig = proven(2);
    let lent = [rig.lend().0, rig.lend().0];
    let waiter = rig.wait(None);
    let opening = rig.begin_opens()[0];
    let _ = rig.withdraw(&waiter);
    for grant in lent {
        let _ = rig.give_back(grant.slot);
    }
    rig.now += SECOND;

    let _ = rig.ledger.open_failed(opening, "refused", rig.now);

    assert!(try_lend(&mut rig).is_none());
    assert_eq!(checked(&mut rig).len(), 2);
}

#[test]
fn a_resource_that_was_refused_or_discarded_says_nothing_about_the_others() {
    let mut rig = proven(3);
    let (slot, id) = rig.ledger.idle()[0];
    let token = rig.ledger.look_at(slot, id, rig.now).expect("it is idle");
    let unfit = Outcome::Unfit(Reason::Refused);
    let _ = rig.ledger.judged(slot, token, unfit, rig.now);
    let lent = rig.lend().0;

    let _ = rig.give_back_as(lent.slot, Condition::Discarded);

    assert!(try_lend(&mut rig).is_some());
    assert!(checked(&mut rig).is_empty());
}

#[test]
fn a_resource_that_proves_alive_afterwards_is_lent_without_another_check() {
    let mut rig = proven(2);
    let (first, out) = (rig.lend().0, rig.lend().0);
    let _ = rig.give_back_as(first.slot, Condition::Broken);
    rig.now += SECOND;

    let _ = rig.give_back(out.slot);

    assert_eq!(try_lend(&mut rig).map(|grant| grant.slot), Some(out.slot));
    assert!(checked(&mut rig).is_empty());
}

#[test]
fn a_resource_that_passes_its_check_is_proven_again() {
    let mut rig = proven(2);
    let lent = rig.lend().0;
    let _ = rig.give_back_as(lent.slot, Condition::Broken);
    let slot = checked(&mut rig)[0];
    rig.now += SECOND;

    let _ = rig.ledger.judged(slot, 9, Outcome::Fit, rig.now);

    assert_eq!(try_lend(&mut rig).map(|grant| grant.slot), Some(slot));
}

#[test]
fn a_resource_that_comes_off_its_tray_was_proven_when_it_was_last_laid_back() {
    let mut rig = Rig::with_trays(
        Config {
            check_after_idle: Some(3600 * SECOND),
            ..of_size(2)
        },
        2,
    );
    rig.stock(2);
    let (on_tray, mut orders) = rig.lend();
    let tray = rig.ledger.find_tray(on_tray.slot).expect("there are trays");
    let _ = rig
        .ledger
        .put_on_tray(on_tray.slot, tray, rig.now, &mut orders);
    let lent = rig.lend().0;
    let laid_back = rig.now;
    rig.now += SECOND;
    let off = OffTray {
        resource: Some(on_tray.resource),
        asker: asker(),
        label: None,
        since: laid_back,
        used_at: Some(laid_back),
        uses: on_tray.uses,
    };

    rig.ledger.taken_off(tray, off);
    let _ = rig.give_back_as(lent.slot, Condition::Broken);

    assert!(try_lend(&mut rig).is_none());
    assert_eq!(checked(&mut rig), [on_tray.slot]);
}

/// A resource that is not on the shelf when another is found dead cannot be checked at once.
#[test]
fn a_resource_that_is_put_back_after_another_was_found_dead_is_unproven() {
    let mut rig = proven(2);
    let lent = rig.lend().0;
    let (slot, id) = rig.ledger.idle()[0];
    let token = rig.ledger.look_at(slot, id, rig.now).expect("it is idle");
    let _ = rig.give_back_as(lent.slot, Condition::Broken);
    assert!(checked(&mut rig).is_empty());
    rig.now += SECOND;

    let _ = rig.ledger.put_back(slot, token, rig.now);

    assert!(try_lend(&mut rig).is_none());
    assert_eq!(checked(&mut rig), [slot]);
}

#[test]
fn a_grant_that_was_not_claimed_when_another_resource_was_found_dead_is_unproven() {
    let mut rig = proven(2);
    let (first, second) = (rig.lend().0, rig.lend().0);
    let _ = rig.ledger.resize(2, rig.now);
    let waiter = rig.wait(None);
    let _ = rig.give_back(first.slot);
    rig.now += SECOND;
    let _ = rig.give_back_as(second.slot, Condition::Broken);
    rig.now += SECOND;

    let _ = rig.withdraw(&waiter);

    assert!(try_lend(&mut rig).is_none());
    assert_eq!(checked(&mut rig), [first.slot]);
}

#[test]
fn a_pool_that_never_checks_does_not_check_then_either() {
    let mut rig = Rig::new(of_size(2));
    rig.stock(2);
    let lent = rig.lend().0;

    let _ = rig.give_back_as(lent.slot, Condition::Broken);

    assert!(try_lend(&mut rig).is_some());
}
