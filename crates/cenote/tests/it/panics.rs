//! A panic in user code, wherever it runs, is a failure like any other: it loses no slot, poisons
//! nothing, and reaches no other caller.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::breaker::{BreakerState, Recovery, Verdict};
use cenote::{AcquireError, CloseReason, Lease, Manager, OpenError, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, Thing};

use crate::support::scribe::{Method, Scribe};
use crate::support::text::panic_message;

#[tokio::test(start_paused = true)]
async fn a_panic_in_open_is_told_to_the_waiter_with_its_message() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Panic);

    let error = rig.pool.acquire().await.unwrap_err();

    let AcquireError::Open {
        error: OpenError::Panicked(said),
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(&**said, "the backend panicked in Open");
    assert!(error.is_retryable());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_check_closes_the_resource_and_the_caller_gets_another() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);
    advance(Duration::from_secs(6)).await;
    rig.backend.once(Call::Check, Gate::Panic);

    let lease = rig.acquire().await;

    assert_eq!(lease.serial, 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 1);
    assert_eq!(
        rig.recorder.of("callback_failed"),
        ["callback_failed 1 Check panicked: the backend panicked in Check"]
    );
    drop(lease);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_clean_closes_the_resource_and_its_waiter_gets_another() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    let waiter = rig.wait();
    rig.backend.once(Call::Clean, Gate::Panic);

    drop(lease);

    assert_eq!(waiter.await.unwrap().serial, 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedClean), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_clean_does_not_reach_an_awaited_release() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    rig.backend.once(Call::Clean, Gate::Panic);

    Lease::release(lease).await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedClean), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_close_frees_the_slot() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    let waiter = rig.wait();
    rig.backend.once(Call::Close, Gate::Panic);

    Lease::discard(lease);

    assert_eq!(waiter.await.unwrap().serial, 2);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 discarded"]);
    assert_eq!(rig.backend.alive(), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_is_broken_or_needs_cleaning_means_that_it_is_broken() {
    for call in [Call::IsBroken, Call::NeedsCleaning] {
        let rig = Rig::with_max_size(1);
        let lease = rig.acquire().await;
        let waiter = rig.wait();
        rig.backend.once(call, Gate::Panic);

        drop(lease);

        assert_eq!(waiter.await.unwrap().serial, 2, "{call:?}");
        assert_eq!(
            rig.pool.status().closes.by(CloseReason::Broken),
            1,
            "{call:?}"
        );
        let told = format!("callback_failed 1 Inspect panicked: the backend panicked in {call:?}");
        assert_eq!(rig.recorder.of("callback_failed"), [told]);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_before_acquire_counts_as_false() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
    });
    drop(rig.acquire().await);
    rig.backend.once(Call::BeforeAcquire, Gate::Panic);

    let lease = rig.acquire().await;

    assert_eq!(lease.serial, 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Refused), 1);
    drop(lease);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_before_release_counts_as_false() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
    });
    let lease = rig.acquire().await;
    rig.backend.once(Call::BeforeRelease, Gate::Panic);

    drop(lease);
    settle().await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Refused), 1);
    assert_eq!((rig.pool.status().total, rig.backend.alive()), (0, 0));
    rig.assert_full_service().await;
}

/// Panics on demand: before it returns a future, or with a payload that is no text.
#[derive(Default)]
struct PanicsOnDemand {
    calls: AtomicUsize,
}

impl Manager for PanicsOnDemand {
    type Resource = ();
    type Error = std::io::Error;

    fn open(&self) -> impl Future<Output = Result<(), std::io::Error>> + Send {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("before there was a future"),
            1 => panic_any(42),
            _ => async { Ok(()) },
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_there_is_a_future_or_without_a_text_is_a_failed_open() {
    let pool = Pool::builder(PanicsOnDemand::default())
        .max_size(1)
        .build()
        .unwrap();

    let (first, second) = (pool.acquire().await, pool.acquire().await);

    let first = first.unwrap_err().to_string();
    assert!(first.contains("before there was a future"), "{first}");
    assert!(matches!(second, Err(AcquireError::Open { .. })));
    assert!(pool.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_predicate_of_retain_reaches_its_caller_and_closes_nothing() {
    let rig = Rig::with_max_size(2);
    let leases = [rig.acquire().await, rig.acquire().await];
    drop(leases);

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        rig.pool.retain(|_| panic!("in the predicate"));
    }));

    assert_eq!(panic_message(&*panicked.unwrap_err()), "in the predicate");
    assert_eq!((rig.pool.status().idle, rig.backend.alive()), (2, 2));
    assert_eq!(rig.pool.status().closes.total(), 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_closure_of_with_reaches_its_caller_and_discards_the_resource() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();

    let panicked = tokio::spawn(async move {
        let _ = pool
            .with(async |thing: &mut Thing| {
                thing.dirty = true;
                panic!("in the closure")
            })
            .await;
    })
    .await;

    let panicked = panicked.unwrap_err().into_panic();
    assert_eq!(panic_message(&*panicked), "in the closure");
    let again = rig.acquire().await;
    assert_eq!((again.serial, again.dirty), (2, false));
    drop(again);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_holder_returns_its_leases_and_wakes_the_waiters() {
    let rig = Rig::with_max_size(2);
    let leases = [rig.acquire().await, rig.acquire().await];
    let (first, second) = (rig.wait(), rig.wait());

    let holder = tokio::spawn(async move {
        let _leases = leases;
        panic!("the holder panicked");
    });

    assert!(holder.await.unwrap_err().is_panic());
    let served = [first.await.unwrap(), second.await.unwrap()];
    assert_eq!(rig.pool.status().opened, 2);
    drop(served);
    rig.assert_full_service().await;
}

/// A rig whose strategy panics in one of its methods.
fn panicky(methods: &'static [Method]) -> (Rig, Scribe) {
    let scribe = Scribe::default();
    scribe.with(|notes| {
        notes.on_success = Some(Verdict::Activate);
        notes.on_failure = Some(Verdict::Deactivate);
        notes.recovery = Some(Recovery::Now);
        notes.panics_in = methods;
    });
    (scribe.rig(2), scribe)
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_on_success_changes_nothing() {
    let (rig, _) = panicky(&[Method::Success]);

    drop(rig.acquire().await);
    Lease::release(rig.acquire().await).await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    assert_eq!(rig.pool.status().idle, 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_on_failure_changes_nothing() {
    let (rig, _) = panicky(&[Method::Failure]);
    rig.backend.once(Call::Open, Gate::Fail);

    let refused = rig.pool.acquire().await;
    rig.acquire().await.broken = true;
    settle().await;

    assert!(matches!(refused, Err(AcquireError::Open { .. })));
    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Broken), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_when_asked_to_recover_is_asked_again() {
    let (rig, scribe) = panicky(&[Method::Recovery]);
    rig.backend.once(Call::Open, Gate::Fail);
    rig.pool.acquire().await.unwrap_err();
    advance(Duration::from_secs(5)).await;
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);

    scribe.with(|notes| notes.panics_in = &[]);
    advance(Duration::from_secs(2)).await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
    drop(rig.acquire().await);
    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    rig.assert_full_service().await;
}
