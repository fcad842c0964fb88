//! Every way to return a resource, crossed with every way in which every callback can go wrong, and with the caller dropped there: no
//! slot is lost, and nothing dirty or broken is lent again.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::{Call, Gate, GatedManager, Rig};
use tokio::time::sleep;

use crate::matrix::{
    Case, Cut, assert_fit, assert_nothing_lost, assert_sums, assert_told, breathe, for_every_case,
    somebody,
};

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

/// All resources are out, and look like this.
async fn all_out(rig: &Rig, look: Look) -> Vec<Lease<GatedManager>> {
    let mut leases = Vec::new();
    for _ in 0..rig.pool.status().max_size {
        let mut lease = rig.acquire().await;
        look.put_on(&mut lease);
        leases.push(lease);
    }
    leases
}

/// A polite return, dropped somewhere.
async fn release(look: Look, case: Case) {
    let rig = case.rig(|pool| pool);
    let leases = all_out(&rig, look).await;
    let mut crowd = Vec::new();
    if case.crowd {
        crowd.extend([somebody(&rig.pool), somebody(&rig.pool)]);
        breathe().await;
    }
    case.arm(&rig);

    for lease in leases {
        case.cut.apply(Lease::release(lease)).await;
        assert_sums(&rig);
    }

    assert_told(crowd).await;
    assert_nothing_lost(&rig).await;
}

/// A return by drop, while a waiter who is about to get it is dropped somewhere.
async fn drop_it(look: Look, case: Case) {
    let rig = case.rig(|pool| pool);
    let mut leases = all_out(&rig, look).await;
    case.arm(&rig);
    let mut crowd = Vec::new();
    let waiting = case.cut.apply(rig.pool.acquire());
    let returning = async {
        if case.crowd {
            crowd.extend([somebody(&rig.pool), somebody(&rig.pool)]);
        }
        tokio::task::yield_now().await;
        drop(leases.pop());
    };

    let (served, ()) = tokio::join!(waiting, returning);

    if let Some(Ok(lease)) = &served {
        assert_fit(lease);
    }
    assert_sums(&rig);
    drop((served, leases));
    assert_told(crowd).await;
    assert_nothing_lost(&rig).await;
}

/// A resource that its holder does not want back.
async fn discard(case: Case) {
    let rig = case.rig(|pool| pool);
    let mut leases = all_out(&rig, Look::Good).await;
    case.arm(&rig);
    let mut crowd = Vec::new();
    let waiting = case.cut.apply(rig.pool.acquire());
    let returning = async {
        if case.crowd {
            crowd.extend([somebody(&rig.pool), somebody(&rig.pool)]);
        }
        tokio::task::yield_now().await;
        leases.drain(..).for_each(Lease::discard);
    };

    let (served, ()) = tokio::join!(waiting, returning);

    assert_sums(&rig);
    drop(served);
    assert_told(crowd).await;
    assert_eq!(rig.pool.status().discarded, case.max_size as u64);
    assert_nothing_lost(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_polite_return_of_what_is_good_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| release(Look::Good, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_polite_return_of_what_is_dirty_loses_nothing_whatever_fails_and_wherever_it_is_dropped()
{
    for_every_case(|case| release(Look::Dirty, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_polite_return_of_what_is_broken_loses_nothing_whatever_fails_and_wherever_it_is_dropped()
{
    for_every_case(|case| release(Look::Broken, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_what_is_good_loses_nothing_whatever_fails_and_wherever_its_next_user_is_dropped()
{
    for_every_case(|case| drop_it(Look::Good, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_what_is_dirty_loses_nothing_whatever_fails_and_wherever_its_next_user_is_dropped()
 {
    for_every_case(|case| drop_it(Look::Dirty, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_what_is_broken_loses_nothing_whatever_fails_and_wherever_its_next_user_is_dropped()
 {
    for_every_case(|case| drop_it(Look::Broken, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_discard_loses_nothing_whatever_fails_and_wherever_the_next_user_is_dropped() {
    for_every_case(discard).await;
}

#[tokio::test(start_paused = true)]
async fn a_polite_return_that_is_dropped_midway_is_cleaned_by_the_pool_and_kept() {
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
