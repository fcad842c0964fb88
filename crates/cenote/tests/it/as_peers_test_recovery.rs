//! Recovery, as psycopg tests it: outages, servers that appear late, and shrinking after a peak.

use std::sync::Arc;
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote::{AcquireError, Lease, Pool};
use cenote_testkit::clock::{now, settle, timed};
use cenote_testkit::{Backend, Call, Gate, GatedManager, GatedPool, Rig};
use tokio::time::sleep;

use crate::support::openings::Openings;
use crate::support::rigs::hold;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A pool of four that keeps itself full, and an observer of its opens.
fn kept_full(on_open_error: OnOpenError) -> (GatedPool, Arc<Backend>, Arc<Openings>) {
    let (backend, tries) = (Arc::new(Backend::default()), Arc::new(Openings::default()));
    let pool = Pool::builder(GatedManager(Arc::clone(&backend)))
        .min_size(4)
        .max_size(4)
        .on_open_error(on_open_error)
        .observer(tries.clone())
        .build()
        .expect("the test's settings are valid");
    (pool, backend, tries)
}

/// psycopg `reconnect`: the server goes away, and the gaps between the tries for a waiter double.
/// Once the server is back, the next try succeeds.
#[tokio::test(start_paused = true)]
async fn psycopg_reconnect_backs_off_and_comes_back() {
    let (pool, backend, tries) = kept_full(OnOpenError::Retry);
    pool.warm().await.unwrap();
    backend.always(Call::Open, Gate::Fail);
    pool.invalidate();
    settle().await;
    tries.times().clear();
    let limited = pool.clone();
    let patient = tokio::spawn(async move { limited.acquire_within(60 * SECOND).await });

    sleep(5 * SECOND).await;
    let gaps = tries.gaps();
    let last = || *tries.times().last().expect("an open began");
    let (before, outage) = (last(), gaps[gaps.len() - 1]);
    backend.heal();
    drop(patient.await.unwrap().unwrap());

    assert!(gaps.len() >= 4 && gaps.len() <= 20, "{gaps:?}");
    let halves = gaps.len() / 2;
    let (early, late): (Duration, Duration) = (
        gaps[..halves].iter().sum::<Duration>() / halves as u32,
        gaps[halves..].iter().sum::<Duration>() / (gaps.len() - halves) as u32,
    );
    assert!(late > 2 * early, "the gaps do not grow: {gaps:?}");
    assert!(last() - before <= 4 * outage, "{gaps:?}");
}

/// psycopg `reconnect_failure`: after the outage the pool is full again within one back-off, by
/// itself, and an acquire takes no time.
#[tokio::test(start_paused = true)]
async fn psycopg_pool_is_full_again_within_one_back_off() {
    let (pool, backend, tries) = kept_full(OnOpenError::Fail);
    pool.warm().await.unwrap();
    backend.always(Call::Open, Gate::Fail);
    pool.invalidate();

    sleep(10 * SECOND).await;
    let down = pool.status();
    let gap = tries.gaps().into_iter().max().unwrap();
    backend.heal();
    // The next gap is twice as long, and jitter halves one of them at most.
    sleep(4 * gap).await;

    assert_eq!((down.total, down.idle), (0, 0));
    assert_eq!(pool.status().idle, 4, "{:#?}", pool.status());
    let asked = now();
    drop(pool.acquire().await.unwrap());
    assert_eq!((now() - asked), Duration::ZERO);
}

/// psycopg `reconnect_failure`: an acquire after the outage does not wait for the back-off of the
/// pool.
#[tokio::test(start_paused = true)]
async fn psycopg_an_acquire_after_the_outage_does_not_wait_for_the_back_off() {
    let (pool, backend, _) = kept_full(OnOpenError::Fail);
    pool.warm().await.unwrap();
    backend.always(Call::Open, Gate::Fail);
    pool.invalidate();
    sleep(60 * SECOND).await;
    backend.heal();
    let asked = now();

    drop(pool.acquire().await.unwrap());

    assert!((now() - asked) < 200 * MS, "{:?}", (now() - asked));
}

/// psycopg `reconnect_after_grow_failed`: the pool was never connected, callers gave up, then the
/// server appears. The pool fills up by itself.
#[tokio::test(start_paused = true)]
async fn psycopg_reconnects_after_it_was_never_connected() {
    for on_open_error in [OnOpenError::Fail, OnOpenError::Retry] {
        let (pool, backend, _) = kept_full(on_open_error);
        backend.always(Call::Open, Gate::Fail);
        for _ in 0..2 {
            let error = pool.acquire_within(SECOND).await.unwrap_err();
            assert!(matches!(
                error,
                AcquireError::Open { .. } | AcquireError::TimedOut(_)
            ));
        }
        sleep(20 * SECOND).await;

        backend.heal();
        sleep(31 * SECOND).await;

        assert_eq!(pool.status().idle, 4, "{:#?}", pool.status());
    }
}

/// The server accepts and says nothing, so opens hang. When it answers again, callers are served
/// although four opens still hang.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_silent_does_not_hold_up_later_callers() {
    let (pool, backend, _) = kept_full(OnOpenError::Fail);
    backend.always(Call::Open, Gate::Hang);
    pool.acquire_within(SECOND).await.unwrap_err();
    backend.heal();
    let asked = now();

    drop(pool.acquire_within(60 * SECOND).await.unwrap());

    // All slots hang, so only `open_timeout` frees one.
    assert!((now() - asked) <= 10 * SECOND, "{:?}", (now() - asked));
    sleep(31 * SECOND).await;
    assert_eq!(pool.status().idle, 4, "{:#?}", pool.status());
}

/// psycopg `shrink`: at most 4, at least 2. After the peak the size falls step by step to 2 and
/// stays there, while light work goes on.
#[tokio::test(start_paused = true)]
async fn psycopg_shrinks_to_its_least_after_a_peak() {
    let rig = Rig::new(|pool| pool.min_size(2).max_size(4).idle_timeout(200 * MS));
    let mut peak = hold(&rig, 4).await;
    let mut sizes = Vec::new();

    for _ in 0..5 {
        // In each period one lease of the peak is returned.
        peak.pop();
        for _ in 0..10 {
            let light = rig.acquire().await;
            sleep(10 * MS).await;
            drop(light);
            sleep(15 * MS).await;
        }
        sizes.push(rig.pool.status().total);
    }

    assert!(sizes.is_sorted_by(|before, after| before >= after));
    assert_eq!(*sizes.last().unwrap(), 2, "{sizes:?}");
    assert_eq!(rig.pool.status().opened, 4, "what was closed was missed");
}

/// psycopg `cancelled_waiter_assigned_conn_is_reclaimed`: a waiter is cancelled after its grant and
/// before its wake-up. The same resource must come back.
#[tokio::test(start_paused = true)]
async fn psycopg_the_grant_of_a_cancelled_waiter_is_reclaimed() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let serial = held.serial;
    let (first, second) = (rig.wait(), rig.wait());

    drop(held);
    drop(first);
    let lease = second.await.unwrap();

    assert_eq!(lease.serial, serial);
    drop(lease);
    assert_eq!(rig.acquire().await.serial, serial);
    assert_eq!(rig.pool.status().opened, 1);
}

/// While one lease is out and the backend refuses, waiters are served soon after the backend is
/// back, however often it had refused before.
#[tokio::test(start_paused = true)]
async fn a_long_refusal_does_not_hold_up_the_queue_once_the_backend_is_back() {
    let rig = Rig::with_max_size(2);
    let _held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Fail);
    for _ in 0..40 {
        assert!(rig.pool.acquire().await.is_err());
    }
    rig.backend.heal();

    let (back, took) = timed(rig.pool.acquire()).await;

    assert!(back.is_ok());
    assert!(took <= Duration::from_secs(1), "it took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_close_is_not_rejected() {
    let rig = Rig::new(|pool| pool.max_size(1).max_waiters(0));
    rig.backend
        .once(Call::Close, Gate::Slow(Duration::from_millis(10)));
    Lease::discard(rig.acquire().await);

    assert!(rig.pool.acquire().await.is_ok());
}
