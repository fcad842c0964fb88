//! A pool that is shared by several runtimes goes on when one of them shuts down.

use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::clock::{advance, eventually, settle, timed};
use cenote_testkit::{Call, Gate, Rig};
use tokio::runtime::{Handle, Runtime};

use crate::support::runtimes::{paused, single, threaded};

const MS: Duration = Duration::from_millis(1);
const LEAK: Duration = Duration::from_secs(10);

const KINDS: [fn() -> Runtime; 2] = [single, threaded];

/// The ways in which a runtime ends.
const ENDS: [fn(Runtime); 3] = [
    |runtime| drop(runtime),
    |runtime| runtime.shutdown_background(),
    |runtime| runtime.shutdown_timeout(100 * MS),
];

/// A rig with two idle resources that were opened on a runtime which is gone.
fn stranded(kind: fn() -> Runtime) -> Rig {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(None));
    kind().block_on(rig.leave_idle(2));
    rig
}

#[test]
fn a_resource_whose_runtime_is_gone_is_checked_once_before_it_is_lent() {
    for kind in KINDS {
        let rig = stranded(kind);

        let second = kind();
        let lease = second.block_on(rig.acquire());
        let checks = rig.backend.calls(Call::Check);

        assert!((1..=2).contains(&checks), "{checks} checks");
        assert_eq!((Lease::uses(&lease), rig.pool.status().opened), (2, 2));
        drop(lease);
        second.block_on(rig.assert_full_service());
        assert_eq!(rig.backend.calls(Call::Check), 2, "one for each resource");
        assert_eq!(rig.pool.status().opened, 2);
    }
}

#[test]
fn a_resource_that_died_with_its_runtime_is_replaced() {
    for kind in KINDS {
        let rig = stranded(kind);
        rig.backend.always(Call::Check, Gate::Fail);

        let second = kind();
        let lease = second.block_on(rig.acquire());

        assert_eq!((Lease::id(&lease), Lease::uses(&lease)), (3, 1));
        assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 2);
        drop(lease);
        second.block_on(rig.assert_full_service());
    }
}

#[test]
fn a_resource_of_another_living_runtime_is_lent_as_it_is() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(None));
    let (first, second) = (threaded(), threaded());
    drop(first.block_on(rig.acquire()));

    let lease = second.block_on(rig.acquire());

    assert_eq!((Lease::id(&lease), rig.backend.calls(Call::Check)), (1, 0));
}

#[test]
fn a_resource_of_a_living_runtime_is_lent_before_one_whose_runtime_is_gone() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(None));
    let (first, second) = (threaded(), single());
    let living = second.block_on(rig.acquire());
    let doubtful = first.block_on(rig.acquire());
    drop(living);
    drop(doubtful);
    drop(first);
    rig.backend.always(Call::Check, Gate::Hang);

    let lease = second.block_on(rig.acquire());

    assert_eq!((Lease::id(&lease), rig.backend.calls(Call::Check)), (1, 0));
}

#[test]
fn a_waiter_is_not_stranded_when_the_runtime_that_opens_for_it_dies() {
    for end in ENDS {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Open, Gate::Hang);
        let (first, second) = (threaded(), threaded());
        let pool = rig.pool.clone();
        first.spawn(async move { pool.acquire().await.map(drop) });
        eventually("it opens there", || rig.backend.calls(Call::Open) == 1);
        let pool = rig.pool.clone();
        let waiting = second.spawn(async move { pool.acquire().await.map(drop) });
        eventually("both wait", || rig.pool.status().waiting == 2);

        end(first);

        let ended = second.block_on(waiting).unwrap();
        assert!(ended.is_ok(), "{ended:?}");
        second.block_on(rig.assert_full_service());
    }
}

#[test]
fn a_waiter_is_not_stranded_when_a_check_dies_with_its_runtime() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(Duration::ZERO));
    let (first, second) = (threaded(), threaded());
    drop(second.block_on(rig.acquire()));
    rig.backend.once(Call::Check, Gate::Hang);
    let pool = rig.pool.clone();
    first.spawn(async move { pool.acquire().await.map(drop) });
    eventually("it checks there", || rig.backend.calls(Call::Check) == 1);
    let pool = rig.pool.clone();
    let waiting = second.spawn(async move { pool.acquire().await.map(drop) });
    eventually("both wait", || rig.pool.status().waiting == 2);

    drop(first);

    assert!(second.block_on(waiting).unwrap().is_ok());
    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 1);
    second.block_on(rig.assert_full_service());
}

#[test]
fn a_waiter_is_not_stranded_when_a_clean_or_a_close_dies_with_its_runtime() {
    for call in [Call::Clean, Call::Close] {
        let rig = Rig::with_max_size(1);
        rig.backend.once(call, Gate::Hang);
        let (first, second) = (threaded(), threaded());
        let mut lease = first.block_on(rig.acquire());
        lease.dirty = call == Call::Clean;
        lease.broken = call == Call::Close;
        drop(lease);
        eventually("it hangs there", || rig.backend.calls(call) == 1);
        let pool = rig.pool.clone();
        let waiting = second.spawn(async move { pool.acquire().await.map(|lease| lease.serial) });
        eventually("one waits", || rig.pool.status().waiting == 1);

        drop(first);

        assert_eq!(second.block_on(waiting).unwrap().unwrap(), 2, "{call:?}");
        second.block_on(rig.assert_full_service());
    }
}

#[test]
fn leases_held_by_tasks_of_a_runtime_that_shuts_down_come_back() {
    for end in ENDS {
        let rig = Rig::with_max_size(2);
        let (first, second) = (threaded(), threaded());
        for _ in 0..2 {
            let pool = rig.pool.clone();
            first.spawn(async move {
                let _held = pool.acquire().await;
                std::future::pending::<()>().await;
            });
        }
        eventually("both are out", || rig.pool.leases().len() == 2);
        let pool = rig.pool.clone();
        let waiting = second.spawn(async move { pool.acquire().await.map(drop) });
        eventually("one waits", || rig.pool.status().waiting == 1);

        end(first);

        assert!(second.block_on(waiting).unwrap().is_ok());
        eventually("all are back", || rig.pool.status().in_use == 0);
        second.block_on(rig.assert_full_service());
    }
}

#[test]
fn a_lease_that_outlives_its_runtime_comes_back() {
    for kind in KINDS {
        let rig = Rig::with_max_size(2);
        let first = kind();
        let (clean, mut dirty) =
            first.block_on(async { (rig.acquire().await, rig.acquire().await) });

        drop(first);
        drop(clean);
        assert_eq!(rig.pool.status().idle, 1);
        dirty.dirty = true;
        drop(dirty);
        assert_eq!(rig.pool.status().cleaning, 1);

        let second = kind();
        second.block_on(rig.assert_full_service());
        assert_eq!(rig.backend.calls(Call::Clean), 1);
    }
}

#[test]
fn one_pool_serves_many_runtimes_in_turn() {
    for kind in KINDS {
        let rig = Rig::new(|pool| pool.max_size(2).min_size(1));

        for round in 1..=5 {
            let runtime = kind();
            runtime.block_on(async {
                let lease = rig.acquire().await;
                assert_eq!(Lease::uses(&lease), round);
                tokio::spawn(async move { drop(lease) }).await.unwrap();
            });
        }

        assert_eq!(rig.pool.status().opened, 1);
        single().block_on(rig.assert_full_service());
    }
}

#[test]
fn the_upkeep_goes_on_on_the_runtime_of_the_next_caller() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(3));
    let (first, second) = (threaded(), threaded());
    first.block_on(rig.pool.warm()).unwrap();
    drop(first);
    rig.pool.invalidate();

    drop(second.block_on(rig.acquire()));

    eventually("it is refilled", || rig.pool.status().idle == 3);
    assert_eq!(rig.backend.alive(), 3);
}

#[test]
fn the_upkeep_moves_to_a_waiter_when_its_runtime_dies() {
    let rig = Rig::with_max_size(1);
    let (first, second) = (threaded(), threaded());
    let lease = first.block_on(rig.acquire());
    let pool = rig.pool.clone();
    let waiting = second.spawn(async move { pool.acquire().await.map(|lease| lease.serial) });
    eventually("one waits", || rig.pool.status().waiting == 1);

    drop(first);
    Lease::discard(lease);

    assert_eq!(second.block_on(waiting).unwrap().unwrap(), 2);
}

#[test]
fn a_waiter_takes_over_the_upkeep_at_once_when_its_runtime_dies() {
    let rig = Rig::new(|pool| pool.max_size(1).leak_after(LEAK).acquire_timeout(None));
    let first = single();
    drop(first.block_on(rig.acquire()));
    let second = paused();

    second.block_on(async {
        let _held = rig.acquire().await;
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.acquire().await.map(drop) });
        // A little longer than `LEAK`, because the lease began in real time after the clock was
        // paused. But not so long that the waiter takes over upkeep that is overdue.
        advance(LEAK + Duration::from_millis(500)).await;
        assert_eq!(rig.pool.status().leaked, 0, "the upkeep is not driven");
        first.shutdown_background();
        // The clock stands still, so that the waiter's look once a second cannot help.
        settle().await;
    });

    assert_eq!(rig.pool.status().leaked, 1);
}

#[test]
fn a_runtime_that_is_not_driven_holds_up_no_other() {
    let rig = Rig::with_max_size(2);
    let (idle, second) = (single(), threaded());
    drop(idle.block_on(rig.acquire()));

    let (one, two) = second.block_on(async { (rig.acquire().await, rig.acquire().await) });
    let waiting = second.spawn({
        let pool = rig.pool.clone();
        async move { pool.acquire().await.map(|lease| lease.serial) }
    });
    eventually("one waits", || rig.pool.status().waiting == 1);
    Lease::discard(one);

    assert_eq!(second.block_on(waiting).unwrap().unwrap(), 3);
    drop(two);
    second.block_on(rig.assert_full_service());
    drop(idle);
}

#[test]
fn a_hung_open_is_passed_by_another_though_the_runtime_of_the_upkeep_is_not_driven() {
    let rig = Rig::with_max_size(3);
    let idle = single();
    let _first = idle.block_on(rig.acquire());
    let second = paused();
    rig.backend.once(Call::Open, Gate::Hang);

    let ended = second.block_on(rig.pool.acquire());

    assert_eq!(ended.unwrap().serial, 2);
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_handles_ends_and_its_upkeep_with_it() {
    let Rig { pool, backend, .. } = Rig::with_max_size(3);
    let alive = || Handle::current().metrics().num_alive_tasks();
    let both = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    drop(both);
    settle().await;
    let weak = pool.downgrade();
    let before = alive();

    drop(pool);
    settle().await;

    assert!(weak.upgrade().is_none());
    assert_eq!((backend.calls(Call::Close), backend.alive()), (2, 0));
    assert_eq!(alive(), before - 1);
}

#[test]
fn a_pool_that_is_dropped_in_a_plain_thread_is_closed_by_its_runtime() {
    let runtime = threaded();
    let Rig { pool, backend, .. } = Rig::with_max_size(1);
    drop(runtime.block_on(pool.acquire()).unwrap());

    drop(pool);

    eventually("it is closed", || backend.calls(Call::Close) == 1);
    eventually("it is gone", || backend.alive() == 0);
}

#[test]
fn a_pool_that_is_dropped_after_its_runtime_drops_its_resources() {
    let Rig { pool, backend, .. } = Rig::with_max_size(1);
    drop(single().block_on(pool.acquire()).unwrap());

    drop(pool);

    assert_eq!(backend.alive(), 0);
}

#[test]
fn close_within_hears_of_the_last_return_though_the_upkeep_is_gone() {
    let rig = Rig::with_max_size(1);
    let first = single();
    drop(first.block_on(rig.acquire()));
    let second = paused();

    let (left, took) = second.block_on(async {
        let held = rig.acquire().await;
        let pool = rig.pool.clone();
        let closing = tokio::spawn(async move { timed(pool.close_within(60_000 * MS)).await });
        settle().await;
        first.shutdown_background();
        drop(held);
        closing.await.unwrap()
    });

    assert!(left.is_empty() && took.is_zero(), "{left:?} after {took:?}");
}

#[test]
fn close_within_does_the_owed_work_if_the_upkeep_is_gone() {
    let rig = Rig::with_max_size(2);
    let first = single();
    drop(first.block_on(rig.acquire()));
    let second = paused();

    let (left, took) = second.block_on(async {
        let (dropped, detached) = (rig.acquire().await, rig.acquire().await);
        let pool = rig.pool.clone();
        let closing = tokio::spawn(async move { timed(pool.close_within(60_000 * MS)).await });
        settle().await;
        first.shutdown_background();
        drop(dropped);
        drop(Lease::detach(detached));
        closing.await.unwrap()
    });

    assert!(left.is_empty() && took.is_zero(), "{left:?} after {took:?}");
}
