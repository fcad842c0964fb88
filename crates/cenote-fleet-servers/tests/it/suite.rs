//! What every engine promises, whatever it is.

use std::sync::Arc;

use cenote::Lease;
use tokio::time::{Instant, sleep, timeout};

use crate::SECOND;
use crate::live::{Apart, CAPACITY, LIMIT, Observer, Place, Seat, TTL, until};

/// Runs all tests on a place.
macro_rules! suite {
    ($place:ty) => {
        suite!($place:
            shares_follow_demand,
            a_nudge_moves_a_share_long_before_the_next_renewal,
            lost_swaps_are_tried_again,
            a_fleet_outlives_a_restart_of_its_engine,
            a_lost_cell_is_learned_again,
            an_old_cell_that_is_put_back_is_learned_again,
            a_killed_member_is_buried_and_its_share_comes_back,
            a_stopped_member_is_buried_and_joins_again,
            a_member_that_leaves_leaves_nothing_behind,
        );
    };
    ($place:ty: $($name:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            crate::suite::$name::<$place>().await;
        }
    )*};
}
pub(crate) use suite;

/// What one of two members can lend, if the other wants no more than its floor. Where sessions are
/// counted, one place is kept for the next process that joins.
const fn most<P: Place>() -> u32 {
    CAPACITY - 2 * P::OVERHEAD - 1 - P::FENCES as u32
}

async fn place<P: Place>() -> Arc<P> {
    Arc::new(P::start().await)
}

pub(crate) async fn shares_follow_demand<P: Place>() {
    let place = place::<P>().await;
    let (first, second) = (place.join().await, place.join().await);
    let observer = Observer::watch(&place);

    let leases = first.hold(most::<P>()).await;
    let wanted = second.want(most::<P>());
    until(|| "one is lent".to_owned(), || second.in_use() == 1).await;
    let seen = || observer.has_seen(most::<P>() + 1);
    until(|| "all are seen".to_owned(), seen).await;
    drop(leases);
    let leases = wanted.await.unwrap();

    assert_eq!(first.fleet.status().share, 1, "{:?}", leases.len());
    observer.finds_no_excess().await;
}

pub(crate) async fn a_nudge_moves_a_share_long_before_the_next_renewal<P: Place>() {
    let place = place::<P>().await;
    // Members renew every two seconds, and look at their pools ten times in between.
    let ttl = 20 * SECOND;
    let mut seats = [place.join_for(ttl).await, place.join_for(ttl).await];
    drop(seats[0].hold(most::<P>()).await);

    let mut took = Vec::new();
    // Without nudges, a member that wants more looks again when it renews.
    while took.iter().all(|took| *took > SECOND) {
        assert!(took.len() < 4, "no nudge arrives: {took:?}");
        let [owner, other] = &seats;
        let has_unused = || {
            let members = other.fleet.status().members;
            let owner = members.iter().find(|member| member.id == owner.fleet.id());
            let unused = owner.map(|owner| owner.has.saturating_sub(owner.wants));
            unused == Some(most::<P>())
        };
        until(|| "the owner does not use its share".to_owned(), has_unused).await;

        let began = now();
        drop(other.hold(most::<P>()).await);
        took.push(began.elapsed());
        seats.reverse();
    }
    println!("a share moved in {took:?}, with renewals every two seconds");
}

pub(crate) async fn lost_swaps_are_tried_again<P: Place>() {
    let place = place::<P>().await;
    let seats = [place.join().await, place.join().await, place.join().await];
    let observer = Observer::watch(&place);

    // Every burst changes what all members want, at the same time.
    let lost = || seats.iter().map(|seat| seat.fleet.status().lost_swaps);
    let bursts = timeout(LIMIT, async {
        while lost().sum::<u64>() == 0 {
            let wanted = seats.each_ref().map(|seat| {
                let wanted = seat.want(2);
                tokio::spawn(async move { drop(wanted.await.unwrap()) })
            });
            for ended in wanted {
                ended.await.unwrap();
            }
        }
    });
    assert!(bursts.await.is_ok(), "never lost: {:?}", lost().max());

    for seat in &seats {
        seat.renews().await;
        assert_eq!(seat.fleet.status().members.len(), 3);
        drop(seat.hold(1).await);
    }
    observer.finds_no_excess().await;
}

pub(crate) async fn a_fleet_outlives_a_restart_of_its_engine<P: Place>() {
    let place = place::<P>().await;
    let (first, second) = (place.join().await, place.join().await);
    drop((first.hold(5).await, second.hold(1).await));

    place.restart();
    let observer = Observer::watch(&place);
    if P::LEARNS_AFTER_RESTART {
        second.knows(false).await;
    }
    first.renews().await;
    second.renews().await;
    second.knows(true).await;

    second.sees_members(2).await;
    drop(second.hold(most::<P>()).await);
    observer.finds_no_excess().await;
}

pub(crate) async fn a_lost_cell_is_learned_again<P: Place>() {
    let place = place::<P>().await;
    let (first, second) = (place.join().await, place.join().await);
    assert!(first.fleet.status().learned, "the group is new");

    learn_after(&place, &first, &second, async || place.wipe().await).await;
}

pub(crate) async fn an_old_cell_that_is_put_back_is_learned_again<P: Place>() {
    let mut place = P::start().await;
    let (first, second) = (place.join().await, place.join().await);
    place.save().await; // in it, the first has next to nothing
    let place = Arc::new(place);

    learn_after(&place, &first, &second, async || place.put_back().await).await;
}

/// The first holds all that it can, and the second wants as much, when the cell is lost.
async fn learn_after<P: Place>(
    place: &Arc<P>,
    first: &Seat<P::Manager>,
    second: &Seat<P::Manager>,
    lose: impl AsyncFnOnce(),
) {
    let leases = first.hold(most::<P>()).await;
    let observer = Observer::watch(place);

    lose().await;
    let wanted = second.want(most::<P>());
    second.knows(false).await;
    second.knows(true).await;

    drop(leases);
    assert_eq!(wanted.await.unwrap().len() as u32, most::<P>());
    observer.finds_no_excess().await;
}

pub(crate) async fn a_killed_member_is_buried_and_its_share_comes_back<P: Place>() {
    let place = place::<P>().await;
    let killed = apart(&place).await;
    let other = place.join().await;
    let observer = Observer::watch(&place);
    assert_eq!(other.hold(1).await.len(), 1, "the rest is lent");

    let id = killed.id;
    task(move || killed.kill()).await;
    place.was_killed(id);
    let began = now();
    let leases = other.hold(most::<P>()).await;

    // Two seconds are enough on a quiet machine.
    let took = began.elapsed();
    println!("the share of a killed member came back in {took:?}, with a TTL of {TTL:?}");
    assert!(took < TTL + 8 * SECOND, "{took:?}");
    assert_eq!(leases.len() as u32, most::<P>());
    observer.finds_no_excess().await;
}

pub(crate) async fn a_stopped_member_is_buried_and_joins_again<P: Place>() {
    let place = place::<P>().await;
    let stopped = apart(&place).await;
    let other = place.join().await;
    let observer = P::FENCES.then(|| Observer::watch(&place));
    assert_eq!(other.hold(1).await.len(), 1, "the rest is lent");

    let stopped = task(move || stopped.stop()).await;
    let leases = other.hold(most::<P>()).await;

    assert_eq!(other.fleet.status().fences > 0, P::FENCES);
    if let Some(observer) = observer {
        observer.finds_no_excess().await;
    }
    drop::<Vec<Lease<_>>>(leases);
    stopped.go_on();
    other.sees_members(2).await;
    assert!(
        task(move || stopped.end()).await,
        "it joins again, and opens another connection"
    );
}

pub(crate) async fn a_member_that_leaves_leaves_nothing_behind<P: Place>() {
    let place = place::<P>().await;
    let (leaver, other) = (place.join().await, place.join().await);
    drop(leaver.hold(4).await);

    leaver.fleet.leave().await;

    other.sees_members(1).await;
    let alone = timeout(LIMIT, async {
        while place.count().await > 1 + P::OVERHEAD {
            sleep(SECOND / 100).await;
        }
    });
    assert!(alone.await.is_ok(), "{} sessions", place.count().await);
}

/// A member apart that holds all but what another one needs to join.
async fn apart<P: Place>(place: &Arc<P>) -> Apart {
    let place = Arc::clone(place);
    task(move || Apart::join(&place, most::<P>())).await
}

/// Runs code that blocks.
async fn task<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the core, and this measures"
)]
fn now() -> Instant {
    Instant::now()
}
