//! The upkeep task: it can be paused, survives what it calls, and keeps nothing alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cenote::{
    BreakerState, Failure, Leaked, Lease, Observer, Opened, Opening, Reason, Recovery, Strategy,
    Verdict,
};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};
use tokio::runtime::Handle;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn while_paused_nothing_is_evicted_retired_checked_refilled_or_reported() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .idle_timeout(SECOND * 50)
            .max_lifetime(SECOND * 70)
            .heartbeat_interval(SECOND * 20)
            .leak_after(SECOND * 10)
            .min_size(3)
    });
    let (held, idle, gone) = (
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    );
    drop(idle);

    rig.pool.pause_upkeep();
    Lease::discard(gone);
    tokio::time::sleep(HOUR).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.opened), (1, 1, 3));
    assert_eq!(status.closed.total(), 1);
    assert_eq!(status.leaked, 0);
    assert_eq!(rig.backend.calls(Call::Check), 0);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn what_was_due_meanwhile_is_done_as_soon_as_upkeep_resumes() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .idle_timeout(SECOND * 50)
            .leak_after(SECOND * 10)
            .upkeep_interval(HOUR)
    });
    let held = rig.acquire().await;
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();
    advance(SECOND * 100).await;

    rig.pool.resume_upkeep();
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.closed.by(Reason::Idle), status.leaked), (1, 1));
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_upkeep_is_paused_still_lends_opens_and_closes() {
    let rig = Rig::new(|pool| pool.max_size(2).min_size(2));
    rig.pool.pause_upkeep();

    let mut lease = rig.acquire().await;
    lease.broken = true;
    drop(lease);
    settle().await;

    assert_eq!(rig.pool.status().closed.by(Reason::Broken), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn pausing_twice_is_pausing_once() {
    let rig = Rig::new(|pool| pool.idle_timeout(SECOND));
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();
    rig.pool.pause_upkeep();

    rig.pool.resume_upkeep();
    advance(SECOND).await;

    assert_eq!(rig.pool.status().closed.by(Reason::Idle), 1);
}

#[tokio::test(start_paused = true)]
async fn the_upkeep_task_ends_with_the_pool_and_keeps_nothing_alive() {
    let rig = Rig::new(|pool| pool.min_size(2));
    drop(rig.acquire().await);
    settle().await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();

    let Rig { pool, backend, .. } = rig;
    drop(pool);
    settle().await;

    assert_eq!(tasks(), before - 1);
    assert_eq!(backend.alive(), 0);
    assert_eq!(Arc::strong_count(&backend), 1, "the manager lives on");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_was_never_used_has_no_task() {
    let before = Handle::current().metrics().num_alive_tasks();

    let rig = Rig::new(|pool| pool.min_size(2));
    settle().await;

    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    assert_eq!(rig.backend.calls(Call::Open), 0);
}

/// Panics in whatever upkeep tells it.
struct Hysteric;

impl Observer for Hysteric {
    fn leaked(&self, _: &Leaked<'_>) {
        panic!("a leak");
    }

    fn opening(&self, _: &Opening<'_>) {
        panic!("an open");
    }

    fn opened(&self, _: &Opened<'_>) {
        panic!("opened");
    }

    fn closed(&self, _: &cenote::Closed<'_>) {
        panic!("closed");
    }
}

#[tokio::test(start_paused = true)]
async fn upkeep_survives_panicking_observers() {
    let rig = Rig::new(|pool| {
        pool.max_size(3)
            .min_size(1)
            .leak_after(SECOND)
            .idle_timeout(SECOND * 5)
            .observer(Arc::new(Hysteric))
    });
    let leaked = rig.acquire().await;
    advance(SECOND).await;

    drop(rig.acquire().await);
    advance(SECOND * 5).await;
    Lease::discard(leaked);
    settle().await;
    advance(MS).await;

    let status = rig.pool.status();
    assert_eq!((status.leaked, status.closed.by(Reason::Idle)), (1, 1));
    assert_eq!((status.idle, status.opened), (1, 3));
    rig.assert_full_service().await;
}

/// Trips at the first failure, and panics whenever it is asked to recover, but the third time.
#[derive(Default)]
struct Fearful {
    asked: Arc<AtomicUsize>,
}

impl Strategy for Fearful {
    fn report_success(&self, _: BreakerState, _: Instant) -> Verdict {
        Verdict::Activate
    }

    fn report_failure(&self, _: BreakerState, _: Failure, _: Instant) -> Verdict {
        Verdict::Deactivate
    }

    fn should_recover(&self, _: Duration) -> Recovery {
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            2 => Recovery::Now,
            _ => panic!("not yet"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn upkeep_survives_a_panicking_strategy_and_asks_it_again() {
    let strategy = Fearful::default();
    let asked = Arc::clone(&strategy.asked);
    let rig = Rig::new(|pool| pool.max_size(1).breaker(strategy));
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    settle().await;
    let at_once = asked.load(Ordering::Relaxed);
    advance(SECOND * 5).await;
    advance(SECOND * 5).await;

    assert_eq!((at_once, asked.load(Ordering::Relaxed)), (1, 3));
    assert_eq!(rig.pool.breaker_state(), BreakerState::Recovering);
    drop(rig.acquire().await);
    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_owed_work_is_done_though_the_first_in_line_is_not_polled() {
    let rig = Rig::new(|pool| pool.max_size(2).acquire_timeout(None));
    let held = (rig.acquire().await, rig.acquire().await);
    let not_polled = rig.wait();
    let pool = rig.pool.clone();
    let second = tokio::spawn(async move { pool.acquire().await.unwrap().serial });
    settle().await;

    Lease::discard(held.0);
    Lease::discard(held.1);
    advance(MS).await;

    assert!(second.is_finished(), "{:?}", rig.pool.status());
    drop(not_polled);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_only_tried_is_kept_up() {
    let rig = Rig::new(|pool| pool.min_size(1));

    let first = rig.pool.try_acquire().unwrap();
    advance(MS).await;
    let second = rig.pool.try_acquire().unwrap();

    assert!(first.is_none() && second.is_some());
}
