//! Every way to return a resource, crossed with every way in which every callback can fail, and
//! with the caller dropped there: no slot is lost, and nothing dirty or broken is lent again.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::{Call, Gate, GatedManager, Rig};
use tokio::time::sleep;

use crate::matrix::{
    Case, Cut, assert_fit, assert_nothing_lost, assert_told, breathe, competitor, for_every_case,
};
use crate::support::status_rules::checked_status;

#[derive(Clone, Copy, Debug)]
enum Look {
    Good,
    Dirty,
    Broken,
}

impl Look {
    fn put_on(self, lease: &mut Lease<GatedManager>) {
        match self {
            Self::Good => {}
            Self::Dirty => lease.dirty = true,
            Self::Broken => lease.broken = true,
        }
    }
}

/// Leases all resources, and puts this look on them.
async fn all_out(rig: &Rig, look: Look) -> Vec<Lease<GatedManager>> {
    let mut leases = Vec::new();
    for _ in 0..rig.pool.status().max_size {
        let mut lease = rig.acquire().await;
        look.put_on(&mut lease);
        leases.push(lease);
    }
    leases
}

/// An awaited release that is dropped at some point.
async fn release(look: Look, case: Case) {
    let rig = case.rig(|pool| pool);
    let leases = all_out(&rig, look).await;
    let mut crowd = Vec::new();
    if case.crowd {
        crowd.extend([competitor(&rig.pool), competitor(&rig.pool)]);
        breathe().await;
    }
    case.arm(&rig);

    for lease in leases {
        case.cut.apply(Lease::release(lease)).await;
        checked_status(&rig.pool);
    }

    assert_told(crowd).await;
    assert_nothing_lost(&rig).await;
}

/// Ends leases by `end`, while a waiter that is about to get a resource is dropped at some point.
async fn end_beside_a_waiter(
    look: Look,
    case: Case,
    end: impl FnOnce(&mut Vec<Lease<GatedManager>>),
) -> Rig {
    let rig = case.rig(|pool| pool);
    let mut leases = all_out(&rig, look).await;
    case.arm(&rig);
    let mut crowd = Vec::new();
    let waiting = case.cut.apply(rig.pool.acquire());
    let ending = async {
        if case.crowd {
            crowd.extend([competitor(&rig.pool), competitor(&rig.pool)]);
        }
        tokio::task::yield_now().await;
        end(&mut leases);
    };

    let (served, ()) = tokio::join!(waiting, ending);

    if let Some(Ok(lease)) = &served {
        assert_fit(lease);
    }
    checked_status(&rig.pool);
    drop((served, leases));
    assert_told(crowd).await;
    rig
}

async fn drop_one(look: Look, case: Case) {
    let rig = end_beside_a_waiter(look, case, |leases| drop(leases.pop())).await;
    assert_nothing_lost(&rig).await;
}

async fn discard_all(case: Case) {
    let rig = end_beside_a_waiter(Look::Good, case, |leases| {
        leases.drain(..).for_each(Lease::discard);
    })
    .await;
    assert_eq!(rig.pool.status().discarded, case.max_size as u64);
    assert_nothing_lost(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_good_resource_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| release(Look::Good, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_dirty_resource_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| release(Look::Dirty, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_broken_resource_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| release(Look::Broken, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_a_good_lease_loses_nothing_whatever_fails_and_wherever_a_waiter_is_dropped() {
    for_every_case(|case| drop_one(Look::Good, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_a_dirty_lease_loses_nothing_whatever_fails_and_wherever_a_waiter_is_dropped() {
    for_every_case(|case| drop_one(Look::Dirty, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_a_broken_lease_loses_nothing_whatever_fails_and_wherever_a_waiter_is_dropped() {
    for_every_case(|case| drop_one(Look::Broken, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_discard_loses_nothing_whatever_fails_and_wherever_a_waiter_is_dropped() {
    for_every_case(discard_all).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_release_is_dropped_midway_is_cleaned_by_the_pool_and_kept() {
    for polls in 0..=6 {
        let rig = Rig::with_max_size(1);
        let mut lease = rig.acquire().await;
        lease.dirty = true;
        rig.backend
            .once(Call::Clean, Gate::Slow(Duration::from_millis(100)));

        Cut::Polls(polls).apply(Lease::release(lease)).await;
        sleep(Duration::from_millis(200)).await;

        let again = rig.acquire().await;
        assert_eq!((again.serial, again.dirty), (1, false), "{polls} polls");
        assert_eq!(rig.backend.calls(Call::Clean), 1, "{polls} polls");
    }
}
