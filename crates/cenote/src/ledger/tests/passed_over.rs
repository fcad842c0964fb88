//! The shelf is looked at from its hot end, and only a part of it.

use super::*;

#[test]
fn a_fit_resource_that_comes_into_view_goes_to_the_waiter() {
    let mut rig = Rig::new(Config {
        check_after_idle: Some(10 * SECOND),
        ..of_size(9)
    });
    rig.stock(9);
    let lent: Vec<_> = (0..9).map(|_| rig.lend().0.slot).collect();
    for slot in lent {
        rig.now += Duration::from_millis(1);
        let _ = rig.give_back(slot);
    }
    rig.now += 9 * SECOND;
    let (coldest, id) = rig.ledger.idle()[0];
    let token = rig
        .ledger
        .look_at(coldest, id, rig.now)
        .expect("it is idle");
    let _ = rig.ledger.judged(coldest, token, Outcome::Fit, rig.now);
    rig.now += 2 * SECOND;

    let waiter = rig.wait(None);

    assert_eq!(waiter.claim().slot, coldest);
}
