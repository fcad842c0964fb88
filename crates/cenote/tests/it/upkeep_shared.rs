//! Several pools with one upkeep task: each is kept up in time, and the task ends with the last.

use std::time::Duration;

use cenote::{CloseReason, SharedUpkeep};
use cenote_testkit::clock::{advance, eventually, settle};
use cenote_testkit::{Call, Gate, GatedManager, Rig};
use tokio::runtime::Handle;

use crate::support::runtimes::threaded;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn rig(upkeep: &SharedUpkeep<GatedManager>, seconds: u32) -> Rig {
    Rig::new(|pool| {
        pool.idle_timeout(SECOND * seconds)
            .upkeep_interval(HOUR)
            .shared_upkeep(upkeep)
    })
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn many_pools_have_one_task_and_each_is_kept_up_when_it_is_due() {
    let upkeep = SharedUpkeep::new();
    let rigs: Vec<_> = (1..=20).map(|seconds| rig(&upkeep, seconds)).collect();
    for rig in rigs.iter().rev() {
        drop(rig.acquire().await);
    }
    settle().await;
    assert_eq!(tasks(), 2, "the upkeep, and the mark of the runtime");

    for gone in 1..=20 {
        advance(SECOND).await;
        let alive = rigs.iter().filter(|rig| rig.backend.alive() > 0).count();
        assert_eq!(alive, 20 - gone);
    }

    let evicted = |rig: &Rig| rig.pool.status().closes.by(CloseReason::Idle);
    assert!(rigs.iter().all(|rig| evicted(rig) == 1));
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_last_pool_and_starts_again_for_the_next() {
    let upkeep = SharedUpkeep::new();
    let (first, second) = (rig(&upkeep, 5), rig(&upkeep, 5));
    drop((first.acquire().await, second.acquire().await));
    settle().await;
    let both = tasks();

    drop(first);
    settle().await;
    let one = tasks();
    drop(second);
    settle().await;
    let none = tasks();

    assert_eq!((one, none), (both, both - 1));
    let third = rig(&upkeep, 5);
    drop(third.acquire().await);
    advance(SECOND * 5).await;
    assert_eq!(third.pool.status().closes.by(CloseReason::Idle), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_close_hangs_delays_no_other() {
    let upkeep = SharedUpkeep::new();
    let (first, second) = (rig(&upkeep, 2), rig(&upkeep, 3));
    first.backend.always(Call::Close, Gate::Hang);
    drop((first.acquire().await, second.acquire().await));

    advance(SECOND * 3).await;

    assert_eq!((first.backend.alive(), second.backend.alive()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_last_lease_of_a_pool_that_was_dropped_is_closed_by_the_shared_task() {
    let upkeep = SharedUpkeep::new();
    let (first, second) = (rig(&upkeep, 60), rig(&upkeep, 60));
    drop(second.acquire().await);
    let lease = first.acquire().await;
    let Rig { pool, backend, .. } = first;
    drop(pool);

    drop(lease);
    settle().await;

    assert_eq!(backend.alive(), 0);
    second.assert_full_service().await;
}

#[test]
fn the_pools_of_a_runtime_that_ends_are_kept_up_on_the_next_one() {
    let upkeep = SharedUpkeep::new();
    let build = || {
        Rig::new(|pool| {
            pool.idle_timeout(Duration::from_millis(20))
                .shared_upkeep(&upkeep)
        })
    };
    let (first, second) = (build(), build());
    let runtime = threaded();
    let held = runtime.block_on(async { (first.acquire().await, second.acquire().await) });

    drop(runtime);
    drop(held);
    let next = threaded();
    next.block_on(async {
        drop(first.acquire().await);
        drop(second.acquire().await);
    });

    for rig in [&first, &second] {
        eventually("it is evicted", || rig.backend.alive() == 0);
    }
}

#[test]
fn a_task_on_a_runtime_that_is_not_driven_is_replaced_for_all_pools() {
    let upkeep = SharedUpkeep::new();
    // Without trays, so that every acquire asks the ledger.
    let build = || {
        Rig::new(|pool| {
            pool.idle_timeout(Duration::from_millis(20))
                .check_after_idle(Duration::ZERO)
                .shared_upkeep(&upkeep)
        })
    };
    let (first, second) = (build(), build());
    let idle = crate::support::runtimes::single();
    idle.block_on(async { drop((first.acquire().await, second.acquire().await)) });

    // From here on `idle` is not driven. The upkeep is taken over a second after it was due.
    let driven = threaded();
    let take_over = || {
        drop(driven.block_on(first.acquire()));
        second.backend.alive() == 0
    };

    eventually("the second pool is kept up, too", take_over);
}
