//! A pool of one thread as a whole: its upkeep, its breaker, its controls, and its end.

use std::time::Duration;

use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote::local::LocalLease;
use cenote::{AcquireError, CloseReason, Config, Health, WarmError};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate};

use crate::support::local_rig::{LocalRig, in_set};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_breaker_trips_by_its_strategy_and_by_hand() {
    in_set(async {
        let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, SECOND);
        let rig = LocalRig::new(|pool| pool.max_size(1).breaker(strategy));
        rig.backend.once(Call::Open, Gate::Fail);
        assert!(rig.pool.acquire().await.is_err());
        assert!(matches!(
            rig.pool.acquire().await,
            Err(AcquireError::Unavailable(_))
        ));

        advance(2 * SECOND).await;

        drop(rig.acquire().await);
        assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
        rig.pool.breaker().trip();
        assert!(matches!(
            rig.pool.try_acquire(),
            Err(AcquireError::Unavailable(_))
        ));
        rig.pool.breaker().reset();
        drop(rig.acquire().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_whole_pool_can_be_controlled() {
    in_set(async {
        let rig = LocalRig::with_max_size(2);
        let (first, second) = (rig.acquire().await, rig.acquire().await);
        assert_eq!(rig.pool.health(), Health::Busy);
        rig.pool.resize(1).unwrap();
        drop(first);
        settle().await;
        assert_eq!((rig.pool.status().total, rig.backend.alive()), (1, 1));
        assert!(rig.pool.resize(0).is_err());

        rig.pool.invalidate();
        drop(second);
        assert_eq!(rig.acquire().await.thing.serial, 3);

        rig.pool.retain(|part| part.thing.serial != 3);
        assert_eq!(rig.acquire().await.thing.serial, 4);

        rig.pool.suspend();
        assert!(rig.pool.acquire_within(MS).await.is_err());
        rig.pool.resume();
        let lease = rig.acquire().await;
        let left = rig.pool.close_within(SECOND).await;
        assert_eq!(left.leases.len(), 1);
        drop(lease);
        assert!(rig.pool.close_within(SECOND).await.is_empty());
        assert_eq!(rig.backend.alive(), 0);
        assert!(matches!(
            rig.pool.acquire().await,
            Err(AcquireError::Closed { .. })
        ));
        assert!(matches!(rig.pool.warm().await, Err(WarmError::Closed)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn upkeep_evicts_refills_and_reports_leaks() {
    in_set(async {
        let rig = LocalRig::new(|pool| {
            let pool = pool.max_size(4).min_size(2).idle_timeout(SECOND);
            pool.leak_after(5 * SECOND).max_lifetime(None).min_idle(0)
        });
        rig.pool.warm().await.unwrap();
        assert_eq!(rig.pool.status().idle, 2);
        let leases = [
            rig.acquire().await,
            rig.acquire().await,
            rig.acquire().await,
        ];
        drop(leases);
        let _forgotten = rig.acquire().await;

        advance(2 * SECOND).await;
        assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 1);
        LocalLease::discard(rig.acquire().await);
        advance(MS).await;
        assert_eq!(rig.pool.status().total, 2, "refilled");
        advance(4 * SECOND).await;

        assert_eq!(rig.pool.status().leaked, 1);
        assert_eq!(rig.recorder.of("leaked").len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_ends_and_so_do_the_uses() {
    in_set(async {
        let rig = LocalRig::new(|pool| {
            pool.max_size(1)
                .max_lifetime(SECOND)
                .lifetime_jitter(0.0)
                .max_uses(3)
        });
        let ids = async |count: usize| {
            let mut ids = Vec::new();
            for _ in 0..count {
                ids.push(LocalLease::id(&rig.acquire().await));
            }
            ids
        };

        assert_eq!(ids(5).await, [1, 1, 1, 2, 2]);
        advance(2 * SECOND).await;

        assert_eq!(LocalLease::id(&rig.acquire().await), 3);
        assert_eq!(rig.pool.status().closes.by(CloseReason::Lifetime), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_resource_leaves_room_and_the_last_handle_closes_the_pool() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);
        let part = LocalLease::detach(rig.acquire().await);
        assert_eq!(rig.pool.status().total, 0);
        let lease = rig.acquire().await;
        let LocalRig { pool, backend, .. } = rig;

        drop(pool);
        settle().await;
        assert_eq!(backend.alive(), 2, "a lease stays valid");
        drop(lease);
        settle().await;

        assert_eq!((backend.alive(), backend.calls(Call::Close)), (1, 1));
        drop(part);
    })
    .await;
}

#[test]
fn a_total_is_divided_over_workers_without_a_rest() {
    let total = |max_size, min_size, min_idle| Config {
        max_size,
        min_size,
        min_idle,
        ..Config::default()
    };
    for (config, workers) in [
        (total(10, 4, 1), 4),
        (total(7, 7, 7), 7),
        (total(5, 0, 0), 1),
    ] {
        let parts = config.divide(workers).unwrap();

        let sum = |part: fn(&Config) -> usize| parts.iter().map(part).sum::<usize>();
        assert_eq!(sum(|part| part.max_size), config.max_size);
        assert_eq!(sum(|part| part.min_size), config.min_size);
        assert_eq!(sum(|part| part.min_idle), config.min_idle);
        for part in parts {
            assert!(part.max_size >= part.min_size.max(part.min_idle).max(1));
            assert_eq!(part.name, None);
        }
    }
    let refused = total(3, 0, 0).divide(4).unwrap_err();
    assert_eq!((refused.field(), refused.value()), ("max_size", "3"));
    assert_eq!(total(3, 0, 0).divide(0).unwrap_err().field(), "workers");
}
