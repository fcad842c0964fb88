//! Reserved places: they count like leases, are given out in order, and hold no resource.

use std::time::Duration;

use cenote::breaker::BreakerState;
use cenote::config::Nested;
use cenote::{AcquireError, Lease};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Gate, Rig, cut};
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_place_opens_nothing_and_counts_like_a_lease() {
    let rig = Rig::with_max_size(2);

    let permits = (
        rig.pool.reserve().await.unwrap(),
        rig.pool.reserve().await.unwrap(),
    );

    assert_eq!(rig.backend.calls(Call::Open), 0);
    let status = rig.pool.status();
    assert_eq!((status.reserved, status.total, status.in_use), (2, 0, 0));
    assert!(rig.pool.try_acquire().unwrap().is_none());
    assert!(rig.pool.try_reserve().unwrap().is_none());
    let late = rig.pool.acquire_within(SECOND).await.unwrap_err();
    let text = late.to_string();
    assert!(
        text.contains("0 of 2 in use, 2 reserved, 0 opening"),
        "{text}"
    );
    drop(permits);
    assert_eq!(rig.pool.status().reserved, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn idle_resources_on_trays_do_not_hide_a_place() {
    let rig = Rig::with_max_size(2);
    let both = (rig.acquire().await, rig.acquire().await);
    drop(both);
    for _ in 0..4 {
        drop((rig.acquire().await, rig.acquire().await));
    }

    let permits = [
        rig.pool.try_reserve().unwrap(),
        rig.pool.try_reserve().unwrap(),
    ];

    assert!(permits.iter().all(Option::is_some));
    assert!(
        rig.pool.try_acquire().unwrap().is_none(),
        "both idle ones are promised"
    );
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn a_permit_gets_its_resource_before_all_waiters() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    let permit = rig.pool.reserve().await.unwrap();
    let mut waiting = rig.wait();
    rig.backend.once(Call::Open, Gate::Slow(SECOND));

    let (lease, took) = timed(permit.acquire()).await;

    let lease = lease.unwrap();
    assert_eq!((Lease::id(&lease), took), (2, SECOND));
    assert!(!waiting.is_served(), "both are out");
    drop(held);
    assert!(waiting.is_served());
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn a_permit_takes_an_idle_resource_at_once() {
    let rig = Rig::with_max_size(2);
    rig.leave_idle(1).await;
    let permit = rig.pool.reserve().await.unwrap();

    let (lease, took) = timed(permit.acquire()).await;

    assert_eq!((Lease::id(&lease.unwrap()), took), (1, Duration::ZERO));
    assert_eq!(rig.pool.status().reserved, 0);
}

#[tokio::test(start_paused = true)]
async fn callers_that_reserve_and_callers_that_acquire_wait_in_one_queue() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut first = Box::pin(rig.pool.reserve());
    assert!(cut(1, &mut first).await.is_none());
    let mut second = rig.wait();
    let mut third = Box::pin(rig.pool.reserve());
    assert!(cut(1, &mut third).await.is_none());
    assert_eq!(rig.pool.status().waiting, 3);

    drop(held);
    let permit = cut(1, &mut first).await.expect("its turn").unwrap();
    assert!(!second.is_served());
    drop(permit);
    assert!(second.is_served());
    assert!(cut(1, &mut third).await.is_none());
    drop(second.await.unwrap());
    drop(cut(1, &mut third).await.expect("its turn").unwrap());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_given_up_in_any_way_goes_to_the_next() {
    for way in 0..5 {
        let rig = Rig::with_max_size(1);
        let permit = rig.pool.reserve().await.unwrap();
        let mut waiting = rig.wait();
        match way {
            0 => drop(permit),
            // The future was never polled.
            1 => drop(permit.acquire()),
            2 => {
                rig.backend.once(Call::Open, Gate::Slow(SECOND));
                assert!(cut(1, permit.acquire()).await.is_none());
            }
            3 => {
                rig.backend.once(Call::Open, Gate::Fail);
                drop(permit.acquire().await.unwrap_err());
            }
            _ => {
                rig.backend.once(Call::Open, Gate::Slow(SECOND));
                drop(permit.acquire_within(SECOND / 2).await.unwrap_err());
            }
        }

        advance(SECOND).await;
        assert_eq!(rig.pool.status().reserved, 0, "way {way}");
        advance(SECOND).await;
        assert!(waiting.is_served(), "way {way}");
        drop(waiting);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_is_cancelled_passes_its_place_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut first = Box::pin(rig.pool.reserve());
    assert!(cut(1, &mut first).await.is_none());
    let mut waiting = rig.wait();

    drop(held);
    assert_eq!(rig.pool.status().reserved, 1, "granted, and not claimed");
    drop(first);

    assert!(waiting.is_served());
    assert_eq!(
        (rig.pool.status().reserved, rig.pool.status().cancelled),
        (0, 1)
    );
}

/// The caller ahead waits for an open that hangs. There is a place for the next one all the same.
#[tokio::test(start_paused = true)]
async fn a_place_does_not_wait_for_the_opens_of_callers_ahead() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Hang);
    let ahead = rig.wait();

    let permit = rig.pool.try_reserve().unwrap();

    assert!(permit.is_some());
    assert!(rig.pool.try_reserve().unwrap().is_none(), "one for each");
    drop(ahead);
    assert!(rig.pool.try_reserve().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_reservation_fails_as_an_acquire_does() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;
    let (late, took) = timed(rig.pool.reserve_within(SECOND)).await;
    assert!(matches!(late, Err(AcquireError::TimedOut(_))));
    assert!(took >= SECOND && took < 2 * SECOND, "{took:?}");

    rig.pool.breaker().trip();
    assert!(matches!(
        rig.pool.reserve().await,
        Err(AcquireError::Unavailable(_))
    ));
    rig.pool.breaker().reset();

    let mut waiting = Box::pin(rig.pool.reserve());
    assert!(cut(1, &mut waiting).await.is_none());
    rig.pool.close();
    assert!(matches!(waiting.await, Err(AcquireError::Closed { .. })));
    assert!(matches!(
        rig.pool.try_reserve(),
        Err(AcquireError::Closed { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_permit_outlives_its_pool_and_learns_what_became_of_it() {
    let rig = Rig::with_max_size(2);
    let (one, other) = (
        rig.pool.reserve().await.unwrap(),
        rig.pool.reserve().await.unwrap(),
    );

    rig.pool.breaker().trip();
    assert!(matches!(
        one.acquire().await,
        Err(AcquireError::Unavailable(_))
    ));
    drop(rig.pool);

    assert!(matches!(
        other.acquire().await,
        Err(AcquireError::Closed { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn shrinking_below_the_reserved_places_makes_permits_wait_and_never_exceeds_the_size() {
    let rig = Rig::with_max_size(3);
    let held = rig.acquire().await;
    let permits = [
        rig.pool.reserve().await.unwrap(),
        rig.pool.reserve().await.unwrap(),
    ];

    rig.pool.resize(1).unwrap();
    let mut leases = permits.map(|permit| Box::pin(permit.acquire()));
    for lease in &mut leases {
        assert!(cut(1, lease).await.is_none(), "the only resource is out");
    }

    drop(held);
    settle().await;
    let [one, other] = leases;
    // Each needs the only resource, so they get it one after the other.
    tokio::join!(async { drop(one.await.unwrap()) }, async {
        drop(other.await.unwrap())
    });
    assert_eq!((rig.backend.alive(), rig.backend.peak()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_recovering_pool_reserves_nothing_before_it_lends() {
    let rig = Rig::with_max_size(2);
    rig.backend.once(Call::Open, Gate::Slow(SECOND));
    rig.pool.breaker().probe();

    assert!(rig.pool.try_reserve().unwrap().is_none());
    advance(2 * SECOND).await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
    drop(
        rig.pool
            .try_reserve()
            .unwrap()
            .expect("one probe is allowed"),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_no_place_is_lost_and_none_is_given_twice() {
    let rig = Rig::new(|pool| pool.max_size(3).acquire_timeout(None));
    let mut tasks = JoinSet::new();
    for task in 0..12_u32 {
        let pool = rig.pool.clone();
        tasks.spawn(async move {
            for nth in 0..300 {
                match (task + nth) % 4 {
                    0 => drop(pool.acquire().await.unwrap()),
                    1 => drop(pool.reserve().await.unwrap()),
                    2 => drop(cut(2, pool.reserve()).await),
                    _ => drop(pool.reserve().await.unwrap().acquire().await.unwrap()),
                }
                let status = pool.status();
                assert!(status.in_use + status.reserved <= 3, "{status:?}");
                tokio::task::yield_now().await;
            }
        });
    }

    tasks.join_all().await;

    assert_eq!(rig.pool.status().reserved, 0);
    rig.assert_full_service().await;
}

/// The first in the queue is a reservation that is not polled.
#[tokio::test(start_paused = true)]
async fn a_place_that_is_not_claimed_in_time_goes_to_the_next() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut sleeper = Box::pin(rig.pool.reserve_within(SECOND));
    assert!(cut(1, &mut sleeper).await.is_none());
    let mut waiting = rig.wait();

    drop(held);
    assert!(!waiting.is_served(), "the place is the sleeper's");
    advance(SECOND + SECOND / 10).await;

    assert!(waiting.is_served());
    assert!(matches!(sleeper.await, Err(AcquireError::TimedOut(_))));
    assert_eq!(
        (rig.pool.status().timed_out, rig.pool.status().reserved),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_not_claimed_is_taken_back_by_a_close_and_by_the_breaker() {
    for trips in [false, true] {
        let rig = Rig::with_max_size(1);
        let held = rig.acquire().await;
        let mut sleeper = Box::pin(rig.pool.reserve());
        assert!(cut(1, &mut sleeper).await.is_none());
        drop(held);
        assert_eq!(rig.pool.status().reserved, 1);

        if trips {
            rig.pool.breaker().trip();
            assert!(matches!(sleeper.await, Err(AcquireError::Unavailable(_))));
        } else {
            rig.pool.close();
            assert!(matches!(sleeper.await, Err(AcquireError::Closed { .. })));
        }

        let status = rig.pool.status();
        assert_eq!((status.reserved, status.refusals.total()), (0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_overdue_waiter_gets_neither_a_place_nor_what_a_place_leaves_over() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut late = Box::pin(rig.pool.reserve_within(SECOND));
    assert!(cut(1, &mut late).await.is_none());
    // The clock moves, and no task runs.
    tokio::time::advance(2 * SECOND).await;

    drop(held);

    assert!(matches!(late.await, Err(AcquireError::TimedOut(_))));
    assert_eq!(rig.pool.status().reserved, 0);
}

/// A permit that fails by itself leaves its place to the callers that wait.
#[tokio::test(start_paused = true)]
async fn the_place_of_a_permit_that_is_denied_serves_the_next_waiter() {
    let rig = Rig::new(|pool| pool.max_size(2).nested(Nested::Deny));
    let _held = rig.acquire().await;
    let reserved = {
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.reserve().await.unwrap() })
    };
    let permit = reserved.await.unwrap();
    let pool = rig.pool.clone();
    let mut waiting = tokio::spawn(async move { pool.acquire().await.unwrap() });
    settle().await;

    let denied = permit.acquire().await;

    assert!(matches!(denied, Err(AcquireError::Nested { .. })));
    settle().await;
    assert!(cut(1, &mut waiting).await.is_some());
}
