//! Defects of phpdot/pool and of the Nexus ConnectionPool that were found by reading them, none of
//! which happens here.
//!
//! The double release of the Nexus ConnectionPool cannot be written: `Lease::release`, `discard`
//! and `detach` take the lease by value, and it is not `Clone`.

use std::time::Duration;

use cenote::{AcquireError, CloseReason, Lease, Pool};
use cenote_testkit::clock::advance;
use cenote_testkit::{Call, Gate, Rig};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::rigs::hold;

/// phpdot/pool `discard`, Nexus `poison`: the slot was free, and no waiter was told.
#[tokio::test(start_paused = true)]
async fn a_discard_did_not_wake_the_waiter() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();

    Lease::discard(held);

    let served = timeout(Duration::from_secs(1), waiter).await;
    assert_eq!(served.expect("it was not woken").unwrap().serial, 2);
}

/// phpdot/pool: a resource that was found dead on its return freed its slot, and no waiter was
/// told.
#[tokio::test(start_paused = true)]
async fn a_dead_return_did_not_wake_the_waiter() {
    let rig = Rig::new(|pool| pool.max_size(1).check_on_return(true));
    let held = rig.acquire().await;
    let waiter = rig.wait();
    rig.backend.once(Call::Check, Gate::Fail);

    drop(held);

    let served = timeout(Duration::from_secs(1), waiter).await;
    assert_eq!(served.expect("it was not woken").unwrap().serial, 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 1);
}

/// phpdot/pool: a close told its waiters "timed out", and only at their deadline. Nexus:
/// "exhausted".
#[tokio::test(start_paused = true)]
async fn a_close_gave_waiters_another_error_and_too_late() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;
    let waiters: Vec<_> = (0..3).map(|_| rig.wait()).collect();

    rig.pool.close();

    for waiter in waiters {
        let told = timeout(Duration::from_millis(1), waiter).await;
        let told = told.expect("it was not told at once");
        assert!(matches!(told, Err(AcquireError::Closed { .. })));
    }
    assert_eq!(rig.pool.status().timed_out, 0);
}

/// phpdot/pool: a refill reserved no slots, so that callers and refill together went over the
/// maximum. Nexus: neither did a create.
#[tokio::test(start_paused = true)]
async fn a_refill_and_its_callers_opened_too_many() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(3));
    rig.backend
        .always(Call::Open, Gate::Slow(Duration::from_millis(50)));
    let warming = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.warm().await.is_ok() }
    });
    let mut callers = JoinSet::new();
    for _ in 0..10 {
        let pool = rig.pool.clone();
        callers.spawn(async move {
            let lease = pool.acquire().await.unwrap();
            sleep(Duration::from_millis(5)).await;
            Lease::discard(lease);
        });
    }

    callers.join_all().await;

    assert!(warming.await.unwrap());
    sleep(Duration::from_secs(1)).await;
    assert_eq!((rig.backend.peak(), rig.pool.status().idle), (3, 3));
    rig.assert_full_service().await;
}

/// phpdot/pool: an `isAlive` that threw took its slot with it.
#[tokio::test(start_paused = true)]
async fn a_check_that_panicked_took_its_slot_with_it() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(Duration::ZERO));
    for _ in 0..5 {
        rig.backend.once(Call::Check, Gate::Panic);
        drop(rig.acquire().await);
    }

    let status = rig.pool.status();

    assert_eq!((status.total, status.idle), (1, 1), "{status:#?}");
    assert_eq!(status.closes.by(CloseReason::FailedCheck), 4);
    rig.assert_full_service().await;
}

/// phpdot/pool: an acquire looked once whether the pool was closed, before it created. The new
/// resource then lived on in a closed pool.
#[tokio::test(start_paused = true)]
async fn an_acquire_did_not_see_a_close_that_came_during_its_open() {
    let rig = Rig::with_max_size(1);
    rig.backend
        .once(Call::Open, Gate::Slow(Duration::from_millis(100)));
    let waiter = rig.wait();
    sleep(Duration::from_millis(50)).await;

    rig.pool.close();
    let told = waiter.await;
    sleep(Duration::from_millis(100)).await;

    assert!(matches!(told, Err(AcquireError::Closed { .. })));
    assert_eq!((rig.backend.alive(), rig.pool.status().total), (0, 0));
    assert_eq!(rig.backend.calls(Call::Close), 1);
}

/// phpdot/pool: no setting was checked.
#[test]
fn a_setting_that_made_no_sense_was_accepted() {
    let build = || Pool::from_fn(async || Ok::<_, std::io::Error>(()));
    let wrong = [
        build().max_size(0),
        build().max_size(2).min_size(3),
        build().max_size(2).min_idle(3),
        build().acquire_timeout(Duration::ZERO),
        build().max_opening(0),
        build().lifetime_jitter(f64::NAN),
        build().lifetime_jitter(1.5),
        build().max_uses(0),
        build().probes(0),
    ];
    let fields = [
        "max_size",
        "min_size",
        "min_idle",
        "acquire_timeout",
        "max_opening",
        "lifetime_jitter",
        "lifetime_jitter",
        "max_uses",
        "probes",
    ];

    let refused = wrong.map(|builder| builder.build().map(|_| ()).unwrap_err());

    assert_eq!(refused.map(|error| error.field()), fields);
}

/// phpdot/pool: a sweep took all idle resources out to look at them, and a caller that came during
/// the sweep found an empty pool.
#[tokio::test(start_paused = true)]
async fn a_sweep_made_the_idle_look_empty() {
    let rig = Rig::new(|pool| {
        pool.max_size(5)
            .check_after_idle(None)
            .heartbeat_interval(Duration::from_secs(10))
    });
    let leases = hold(&rig, 4).await;
    drop(leases);
    rig.backend
        .always(Call::Check, Gate::Slow(Duration::from_millis(500)));

    advance(Duration::from_secs(10)).await;
    let status = rig.pool.status();
    let lease = rig.pool.try_acquire().unwrap();

    assert!(status.checking > 0, "{status:#?}");
    assert_eq!((status.total, status.idle + status.checking), (4, 4));
    assert!(lease.is_some());
    assert_eq!(rig.backend.calls(Call::Open), 4);
}

/// Nexus: the time limit of a close was ignored.
#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_close_was_ignored() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    drop(rig.acquire().await);
    rig.backend.always(Call::Close, Gate::Hang);

    let limit = Duration::from_secs(3);
    let slack = Duration::from_millis(2);
    let early = timeout(limit - slack, rig.pool.close_within(limit)).await;
    let closed = timeout(limit + slack, rig.pool.close_within(limit)).await;

    assert!(early.is_err(), "it did not wait");
    let holders = closed.expect("it waited for too long").leases;
    assert_eq!(holders[0].id, Lease::id(&held));
    assert_eq!(holders.len(), 1);
}

/// Nexus: the settings of the health check were never read.
#[tokio::test(start_paused = true)]
async fn the_health_checks_settings_led_nowhere() {
    let rig = Rig::new(|pool| {
        pool.max_size(2)
            .min_size(1)
            .heartbeat_interval(Duration::from_secs(10))
    });
    drop(rig.acquire().await);

    advance(Duration::from_secs(10)).await;
    assert_eq!(rig.backend.calls(Call::Check), 1);
    rig.backend.once(Call::Check, Gate::Fail);
    advance(Duration::from_secs(10)).await;

    assert_eq!(rig.backend.calls(Call::Check), 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 1);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((rig.pool.status().idle, rig.pool.status().opened), (1, 2));
}

/// Nexus: the evictor was written, and never scheduled.
#[tokio::test(start_paused = true)]
async fn the_evictor_was_never_scheduled() {
    let rig = Rig::new(|pool| pool.max_size(2).idle_timeout(Duration::from_secs(40)));
    drop(rig.acquire().await);

    advance(Duration::from_secs(39)).await;
    assert_eq!(rig.pool.status().idle, 1);
    advance(Duration::from_secs(2)).await;

    assert_eq!((rig.pool.status().total, rig.backend.alive()), (0, 0));
    assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 1);
}

/// Nexus: the leak detector was written, and never scheduled.
#[tokio::test(start_paused = true)]
async fn the_leak_detector_was_never_scheduled() {
    let rig = Rig::new(|pool| pool.max_size(1).leak_after(Duration::from_secs(10)));
    let _held = rig.acquire().await;

    advance(Duration::from_secs(9)).await;
    assert_eq!(rig.pool.status().leaked, 0);
    advance(Duration::from_secs(20)).await;

    assert_eq!(rig.pool.status().leaked, 1);
    let told = rig.recorder.of("leaked");
    assert!(told.len() == 1 && told[0].contains(file!()), "{told:?}");
}

/// Nexus: `minIdle` was read from the settings, and used nowhere.
#[tokio::test(start_paused = true)]
async fn min_idle_was_used_nowhere() {
    let rig = Rig::new(|pool| pool.max_size(4).min_idle(2));

    let one = rig.acquire().await;
    sleep(Duration::from_secs(1)).await;
    let with_one_out = rig.pool.status();
    let more = [rig.acquire().await, rig.acquire().await];
    sleep(Duration::from_secs(1)).await;
    let with_three_out = rig.pool.status();

    assert_eq!((with_one_out.idle, with_one_out.total), (2, 3));
    assert_eq!((with_three_out.idle, with_three_out.total), (1, 4));
    drop((one, more));
    rig.assert_full_service().await;
}
