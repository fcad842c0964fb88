//! A panic in user code, wherever it runs, is a failure like any other: it loses no slot, poisons nothing, and reaches nobody else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cenote::{
    AcquireError, BreakerState, Failure, Lease, Manager, OpenError, Pool, Reason, Recovery,
    Strategy, Verdict,
};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, Thing};

fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_open_is_told_to_the_one_who_waits_with_its_message() {
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
    assert_eq!(rig.pool.status().closed.by(Reason::FailedCheck), 1);
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
    assert_eq!(rig.pool.status().closed.by(Reason::FailedClean), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_clean_does_not_reach_the_one_who_returns_politely() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    rig.backend.once(Call::Clean, Gate::Panic);

    Lease::release(lease).await;

    assert_eq!(rig.pool.status().closed.by(Reason::FailedClean), 1);
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
        assert_eq!(rig.pool.status().closed.by(Reason::Broken), 1, "{call:?}");
        let told = format!("callback_failed 1 Inspect panicked: the backend panicked in {call:?}");
        assert_eq!(rig.recorder.of("callback_failed"), [told]);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_before_acquire_is_a_no() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
    });
    drop(rig.acquire().await);
    rig.backend.once(Call::BeforeAcquire, Gate::Panic);

    let lease = rig.acquire().await;

    assert_eq!(lease.serial, 2);
    assert_eq!(rig.pool.status().closed.by(Reason::Refused), 1);
    drop(lease);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_before_release_is_a_no() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
    });
    let lease = rig.acquire().await;
    rig.backend.once(Call::BeforeRelease, Gate::Panic);

    drop(lease);
    settle().await;

    assert_eq!(rig.pool.status().closed.by(Reason::Refused), 1);
    assert_eq!((rig.pool.status().total, rig.backend.alive()), (0, 0));
    rig.assert_full_service().await;
}

/// Panics when it is told to: before there is a future, or with something that is no text.
#[derive(Default)]
struct Hasty {
    calls: AtomicUsize,
}

impl Manager for Hasty {
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
    let pool = Pool::builder(Hasty::default()).max_size(1).build().unwrap();

    let (first, second) = (pool.acquire().await, pool.acquire().await);

    let first = first.unwrap_err().to_string();
    assert!(first.contains("before there was a future"), "{first}");
    assert!(matches!(second, Err(AcquireError::Open { .. })));
    assert!(pool.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_predicate_of_retain_goes_on_and_closes_nothing() {
    let rig = Rig::with_max_size(2);
    let leases = [rig.acquire().await, rig.acquire().await];
    drop(leases);

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        rig.pool.retain(|_| panic!("in the predicate"));
    }));

    assert_eq!(message(panicked.unwrap_err()), "in the predicate");
    assert_eq!((rig.pool.status().idle, rig.backend.alive()), (2, 2));
    assert_eq!(rig.pool.status().closed.total(), 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_closure_of_with_goes_on_and_returns_the_resource() {
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
    assert_eq!(message(panicked), "in the closure");
    let again = rig.acquire().await;
    assert_eq!((again.serial, again.dirty), (1, false));
    drop(again);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_holder_returns_its_leases_and_wakes_who_waits() {
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

/// A strategy that panics in one of its methods.
struct Panicky {
    on: Failing,
    healed: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failing {
    Success,
    Failure,
    Recovery,
}

impl Panicky {
    fn at(&self, method: Failing) {
        let healed = self.healed.load(Ordering::Relaxed);
        assert!(healed || self.on != method, "the strategy panicked");
    }
}

impl Strategy for Panicky {
    fn report_success(&self, state: BreakerState, _: Instant) -> Verdict {
        self.at(Failing::Success);
        match state {
            BreakerState::Recovering => Verdict::Activate,
            _ => Verdict::Keep,
        }
    }

    fn report_failure(&self, _: BreakerState, _: Failure, _: Instant) -> Verdict {
        self.at(Failing::Failure);
        Verdict::Deactivate
    }

    fn should_recover(&self, _: Duration) -> Recovery {
        self.at(Failing::Recovery);
        Recovery::Now
    }
}

fn panicky(on: Failing) -> (Rig, Arc<AtomicBool>) {
    let healed = Arc::new(AtomicBool::new(false));
    let strategy = Panicky {
        on,
        healed: Arc::clone(&healed),
    };
    let rig = Rig::new(|pool| pool.max_size(2).breaker(strategy));
    (rig, healed)
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_on_success_changes_nothing() {
    let (rig, _) = panicky(Failing::Success);

    drop(rig.acquire().await);
    Lease::release(rig.acquire().await).await;

    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    assert_eq!(rig.pool.status().idle, 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_on_failure_changes_nothing() {
    let (rig, _) = panicky(Failing::Failure);
    rig.backend.once(Call::Open, Gate::Fail);

    let refused = rig.pool.acquire().await;
    rig.acquire().await.broken = true;
    settle().await;

    assert!(matches!(refused, Err(AcquireError::Open { .. })));
    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    assert_eq!(rig.pool.status().closed.by(Reason::Broken), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_when_asked_to_recover_is_asked_again() {
    let (rig, healed) = panicky(Failing::Recovery);
    rig.backend.once(Call::Open, Gate::Fail);
    rig.pool.acquire().await.unwrap_err();
    advance(Duration::from_secs(5)).await;
    assert_eq!(rig.pool.breaker_state(), BreakerState::Inactive);

    healed.store(true, Ordering::Relaxed);
    advance(Duration::from_secs(2)).await;

    assert_eq!(rig.pool.breaker_state(), BreakerState::Recovering);
    drop(rig.acquire().await);
    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    rig.assert_full_service().await;
}
