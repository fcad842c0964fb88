//! User code may call back into a pool of one thread from everywhere, and it may panic.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use cenote::AcquireError;
use cenote::event::{Acquired, Observer, Released};
use cenote::local::{LocalLease, LocalPool};
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate};

use crate::support::local_rig::{LocalRig, Parts, in_set};

const SECOND: Duration = Duration::from_secs(1);

/// Uses the pool in every way that a plain function can.
fn use_it(pool: &LocalPool<Parts>) {
    let _ = pool.status();
    let _ = (pool.health(), pool.leases(), pool.advice(), pool.slots());
    let tried = pool.try_acquire();
    if let Ok(Some(lease)) = tried {
        LocalLease::label(&lease, "calls back");
        drop(lease);
    }
    pool.retain(|_| true);
    pool.suspend();
    pool.resume();
    pool.breaker().trip();
    pool.breaker().reset();
    let size = pool.config().max_size;
    let _ = pool.resize(size);
    let mut acquiring = Box::pin(pool.acquire());
    let _ = acquiring
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
}

#[tokio::test(start_paused = true)]
async fn a_destructor_of_a_resource_may_use_the_pool() {
    in_set(async {
        let rig = LocalRig::with_max_size(2);
        let _other = rig.acquire().await;
        let pool = rig.pool.clone();
        *rig.pool.manager().dropped.borrow_mut() = Some(Box::new(move || use_it(&pool)));

        LocalLease::discard(rig.acquire().await);
        settle().await;

        assert!(
            rig.pool.manager().dropped.borrow().is_none(),
            "it was called"
        );
        assert_eq!(rig.pool.status().in_use, 1);
        drop(rig.acquire().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn is_broken_may_use_the_pool_at_every_place() {
    in_set(async {
        for by_tray in [false, true] {
            let rig = LocalRig::with_max_size(2);
            if by_tray {
                drop(rig.acquire().await);
                drop(rig.acquire().await);
            }
            let arm = || {
                let pool = rig.pool.clone();
                let call = Box::new(move || use_it(&pool));
                *rig.pool.manager().inspected.borrow_mut() = Some(call);
            };

            arm();
            let lease = rig.acquire().await;
            arm();
            drop(lease);
            settle().await;

            assert!(rig.pool.manager().inspected.borrow().is_none());
            let status = rig.pool.status();
            assert_eq!(
                (status.in_use, status.waiting),
                (0, 0),
                "by tray: {by_tray}"
            );
            assert_eq!(status.acquired, status.released);
        }
    })
    .await;
}

thread_local! {
    static POOL: RefCell<Option<LocalPool<Parts>>> = const { RefCell::new(None) };
}

/// Observers are `Send`. One that uses a pool of one thread finds it by its thread.
struct Meddler;

fn meddle() {
    let pool = POOL.with_borrow_mut(Option::take);
    if let Some(pool) = pool {
        use_it(&pool);
        POOL.set(Some(pool));
    }
}

impl Observer for Meddler {
    fn acquired(&self, _: &Acquired<'_>) {
        meddle();
    }

    fn released(&self, _: &Released<'_>) {
        meddle();
        panic!("an observer panics on purpose");
    }
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        meddle();
        panic!("a waker panics on purpose");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_use_the_pool_and_panic() {
    in_set(async {
        let rig = LocalRig::with_max_size(2);
        rig.pool.attach(Arc::new(Meddler));
        POOL.set(Some(rig.pool.clone()));

        for _ in 0..5 {
            drop(rig.acquire().await);
            settle().await;
        }
        POOL.set(None);

        let status = rig.pool.status();
        assert_eq!((status.in_use, status.waiting), (0, 0));
        assert_eq!(status.acquired, status.released);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_waker_may_use_the_pool_and_panic_and_the_next_waiter_is_served() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);
        let held = rig.acquire().await;
        let waker = Waker::from(Arc::new(Meddler));
        let mut first = Box::pin(rig.pool.acquire());
        let polled = first.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        POOL.set(Some(rig.pool.clone()));

        drop(held);
        POOL.set(None);
        let second = rig.pool.acquire();
        drop(first);

        assert_eq!(LocalLease::id(&second.await.unwrap()), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_callback_may_panic() {
    in_set(async {
        let calls = [
            Call::Open,
            Call::Check,
            Call::IsBroken,
            Call::NeedsCleaning,
            Call::Clean,
            Call::Close,
        ];
        for call in calls {
            let rig = LocalRig::new(|pool| pool.max_size(1).check_on_return(true));
            rig.backend.once(call, Gate::Panic);
            for _ in 0..3 {
                if let Ok(mut part) = rig.pool.acquire().await {
                    part.thing.dirty = true;
                    LocalLease::release(part).await;
                }
            }
            rig.pool.invalidate();
            settle().await;

            drop(rig.acquire().await);
            settle().await;
            let status = rig.pool.status();
            assert_eq!((status.total, status.in_use), (1, 0), "{call:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_panics_returns_its_resource_and_retain_may_panic() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);
        let lease = rig.acquire().await;
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _lease = lease;
            panic!("a holder panics on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(rig.pool.status().idle, 1);

        let retain = AssertUnwindSafe(|| rig.pool.retain(|_| panic!("on purpose")));
        assert!(catch_unwind(retain).is_err());

        assert_eq!(rig.pool.status().idle, 1);
        drop(rig.acquire().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_local_hook_may_share_data_of_its_thread() {
    in_set(async {
        let asked = Rc::new(RefCell::new(Vec::new()));
        let (before, after) = (Rc::clone(&asked), Rc::clone(&asked));
        let rig = LocalRig::new(|pool| {
            pool.before_acquire(async move |_| {
                tokio::task::yield_now().await;
                before.borrow_mut().push("acquire");
                true
            })
            .before_release(async move |part| {
                after.borrow_mut().push("release");
                part.thing.serial != 2
            })
        });

        for _ in 0..3 {
            LocalLease::release(rig.acquire().await).await;
        }
        LocalLease::discard(rig.acquire().await);
        LocalLease::release(rig.acquire().await).await;

        let expected = [
            "release", "acquire", "release", "acquire", "release", "acquire",
        ];
        assert_eq!(asked.borrow()[..6], expected);
        assert_eq!(
            rig.pool.status().idle,
            0,
            "the hook has refused the second one"
        );
    })
    .await;
}

#[tokio::test]
async fn without_a_local_set_an_acquire_is_an_error_and_the_rest_does_no_harm() {
    let rig = LocalRig::with_max_size(1);

    let refused = rig.pool.acquire().await.unwrap_err();

    assert!(
        matches!(refused, AcquireError::NoLocalSet { .. }),
        "{refused}"
    );
    assert!(!refused.is_retryable());
    assert!(refused.to_string().contains("LocalSet"), "{refused}");
    assert!(rig.pool.warm().await.is_err());
    assert!(rig.pool.try_acquire().unwrap().is_none());
    rig.pool.invalidate();
    assert!(rig.pool.close_within(SECOND).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_may_end_outside_of_the_set_and_the_next_set_goes_on() {
    let rig = LocalRig::new(|pool| pool.max_size(1).idle_timeout(SECOND));
    let mut lease = in_set(rig.acquire()).await;
    lease.thing.dirty = true;

    drop(lease);
    assert_eq!(rig.pool.status().cleaning, 1, "the next caller does it");

    in_set(async {
        assert!(!rig.acquire().await.thing.dirty);
        tokio::time::sleep(3 * SECOND).await;
        assert_eq!(rig.pool.status().idle, 0, "there is a new upkeep task");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_dropped_with_work_under_way_loses_no_slot() {
    for call in [Call::Open, Call::Check, Call::Clean, Call::Close] {
        let rig = LocalRig::new(|pool| pool.max_size(1).check_on_return(true));
        in_set(async {
            if call != Call::Open {
                let mut part = rig.acquire().await;
                part.thing.dirty = call == Call::Clean;
                part.thing.broken = call == Call::Close;
                rig.backend.always(call, Gate::Hang);
                drop(part);
            }
            rig.backend.always(call, Gate::Hang);
            let waiting = tokio::time::timeout(SECOND / 10, rig.pool.acquire());
            assert!(waiting.await.is_err(), "{call:?} hangs");
        })
        .await;
        rig.backend.heal();

        assert_eq!(rig.pool.status().total, 0, "{call:?}");
        in_set(async { drop(rig.acquire().await) }).await;
        assert_eq!(rig.backend.peak(), 1, "{call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_and_its_leases_may_outlive_every_set() {
    let rig = LocalRig::with_max_size(2);
    let (first, second) = in_set(async { (rig.acquire().await, rig.acquire().await) }).await;
    let backend = Arc::clone(&rig.backend);

    drop(first);
    drop(rig);
    assert_eq!(backend.alive(), 2, "the second lease keeps the pool");
    drop(second);

    assert_eq!(
        backend.alive(),
        0,
        "the resources were dropped with the pool"
    );
}
