//! A pool of one thread keeps the promises of a pool of many.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::config::Nested;
use cenote::local::{LocalLease, LocalPool};
use cenote::{AcquireError, CloseReason, OpenError, Pool};
use cenote_testkit::clock::{advance, now, settle};
use cenote_testkit::{Call, Gate, GatedManager, cut};
use tokio::task::spawn_local;

use crate::support::local_rig::{LocalRig, in_set};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Whether the first poll of a future leaves it pending.
fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    std::pin::Pin::new(future).poll(&mut context).is_pending()
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_send_is_lent_again_and_again() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);

        for round in 1..=100 {
            let part = rig.acquire().await;
            part.uses.set(part.uses.get() + 1);
            assert_eq!((LocalLease::uses(&part), part.uses.get()), (round, round));
        }

        let status = rig.pool.status();
        assert_eq!(
            (status.opened, status.acquired, status.released),
            (1, 100, 100)
        );
        assert_eq!(rig.backend.peak(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_manager_of_a_pool_works_in_a_local_pool() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);
        let manager = GatedManager(rig.backend.clone());
        let (pool, local) = (Pool::builder(manager.clone()), LocalPool::builder(manager));

        let first = pool.build().unwrap().acquire().await.unwrap().serial;
        let second = local.build().unwrap().acquire().await.unwrap().serial;

        assert_eq!((first, second), (1, 2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_the_order_of_their_arrival() {
    in_set(async {
        let rig = LocalRig::with_max_size(2);
        let order = Rc::new(RefCell::new(Vec::new()));
        let held = (rig.acquire().await, rig.acquire().await);
        for nth in 0..20 {
            let (pool, order) = (rig.pool.clone(), Rc::clone(&order));
            spawn_local(async move {
                let lease = pool.acquire().await.unwrap();
                order.borrow_mut().push(nth);
                tokio::task::yield_now().await;
                drop(lease);
            });
        }
        settle().await;
        assert!(rig.pool.try_acquire().unwrap().is_none(), "they come first");

        drop(held);
        settle().await;

        assert_eq!(*order.borrow(), (0..20).collect::<Vec<_>>());
        assert_eq!(rig.backend.peak(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_passes_its_turn_on_wherever_it_is_dropped() {
    in_set(async {
        for polls in 0..4 {
            let rig = LocalRig::with_max_size(1);
            let held = rig.acquire().await;
            let mut first = Box::pin(rig.pool.acquire());
            for _ in 0..polls {
                assert!(is_pending(&mut first));
            }
            let mut second = Box::pin(rig.pool.acquire());
            assert!(is_pending(&mut second));

            drop(held);
            drop(first);

            assert_eq!(LocalLease::id(&second.await.unwrap()), 1, "{polls} polls");
            let status = rig.pool.status();
            assert_eq!((status.waiting, status.in_use, status.idle), (0, 0, 1));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_acquire_may_be_dropped_at_every_await_of_an_open() {
    in_set(async {
        for polls in 1..12 {
            let rig = LocalRig::with_max_size(1);
            rig.backend.once(Call::Open, Gate::Slow(MS));

            let cut = cut(polls, rig.pool.acquire()).await;
            drop(cut);
            advance(SECOND).await;

            // A task that has not begun when its only caller gives up opens nothing.
            let opens = rig.backend.calls(Call::Open);
            assert!(opens == 1 || polls == 1, "{polls} polls");
            assert_eq!(
                rig.pool.status().idle,
                opens,
                "the open goes on: {polls} polls"
            );
            drop(rig.acquire().await);
            assert_eq!(rig.backend.peak(), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_holds_and_the_error_names_holder_and_line() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);
        let (held, line) = (rig.pool.acquire().await.unwrap(), line!());
        LocalLease::label(&held, "nightly report");
        let began = now();

        let error = rig.pool.acquire_within(250 * MS).await.unwrap_err();

        assert_eq!((now() - began).as_millis() / 10, 25);
        let text = error.to_string();
        assert!(
            text.contains("no resource within 250.0ms: 1 of 1 in use"),
            "{text}"
        );
        assert!(text.contains(&format!("local.rs:{line}")), "{text}");
        assert!(text.contains("nightly report"), "{text}");
        let deadline = began + 300 * MS;
        assert!(matches!(
            rig.pool.acquire_by(deadline).await,
            Err(AcquireError::TimedOut(_))
        ));
        assert_eq!(rig.pool.status().timed_out, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_open_may_fail_hang_and_panic() {
    in_set(async {
        let rig = LocalRig::new(|pool| pool.max_size(1).open_timeout(SECOND));
        for gate in [Gate::Fail, Gate::Hang, Gate::Panic] {
            rig.backend.once(Call::Open, gate);

            let refused = rig.pool.acquire().await.err();

            let Some(AcquireError::Open { error, .. }) = refused else {
                panic!("{gate:?}: {refused:?}");
            };
            let fits = match gate {
                Gate::Hang => matches!(error, OpenError::TimedOut(limit) if limit == SECOND),
                Gate::Panic => matches!(error, OpenError::Panicked(_)),
                _ => matches!(error, OpenError::Failed(_)),
            };
            assert!(fits, "{gate:?}: {error}");
        }

        assert_eq!(rig.acquire().await.thing.serial, 1);
        assert_eq!(rig.pool.status().total, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dirty_resource_is_cleaned_and_a_broken_one_is_closed() {
    in_set(async {
        let rig = LocalRig::new(|pool| pool.max_size(1).clean_timeout(SECOND));
        let mut part = rig.acquire().await;
        part.thing.dirty = true;
        drop(part);

        let mut part = rig.acquire().await;
        assert!(!part.thing.dirty);
        part.thing.broken = true;
        LocalLease::release(part).await;

        assert_eq!(rig.pool.status().closes.by(CloseReason::Broken), 1);
        assert_eq!(rig.acquire().await.thing.serial, 2);
        for gate in [Gate::Fail, Gate::Hang, Gate::Panic] {
            rig.backend.once(Call::Clean, gate);
            rig.acquire().await.thing.dirty = true;
        }
        assert_eq!(rig.acquire().await.thing.serial, 5);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_midway_goes_on() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);
        rig.backend.once(Call::Clean, Gate::Slow(SECOND));
        let mut part = rig.acquire().await;
        part.thing.dirty = true;

        assert!(cut(1, LocalLease::release(part)).await.is_none());
        assert_eq!(rig.pool.status().cleaning, 1);
        advance(2 * SECOND).await;

        assert_eq!(rig.pool.status().idle, 1);
        assert_eq!(rig.backend.calls(Call::Clean), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_was_idle_is_checked_first() {
    in_set(async {
        let rig = LocalRig::new(|pool| pool.max_size(1).check_after_idle(SECOND));
        drop(rig.acquire().await);
        drop(rig.acquire().await);
        assert_eq!(rig.backend.calls(Call::Check), 0);

        advance(2 * SECOND).await;
        rig.backend.once(Call::Check, Gate::Fail);

        assert_eq!(rig.acquire().await.thing.serial, 2);
        assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_lease_of_one_task_can_be_denied_and_is_reported() {
    in_set(async {
        let rig = LocalRig::new(|pool| pool.max_size(1).nested(Nested::Deny));
        let _first = rig.acquire().await;
        assert!(matches!(
            rig.pool.acquire().await,
            Err(AcquireError::Nested { .. })
        ));

        let rig = LocalRig::with_max_size(1);
        let _first = rig.acquire().await;
        let error = rig.pool.acquire_within(3 * SECOND).await.unwrap_err();

        assert!(error.to_string().contains("nested"), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn closures_borrow_a_resource_and_errors_end_its_lease() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);

        let serial = rig.pool.with(async |part| part.thing.serial).await;
        let failed = rig.pool.try_with(async |_| Err::<(), _>("no")).await;

        assert_eq!(serial.unwrap(), 1);
        assert_eq!(failed.unwrap(), Err("no"));
        let idle = rig.pool.wait_for(|status| status.idle == 1).await.idle;
        assert_eq!(idle, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_never_polled_asks_for_nothing() {
    in_set(async {
        let rig = LocalRig::with_max_size(1);

        drop(rig.pool.acquire());
        let mut first = pin!(rig.pool.acquire());
        let polled = std::future::poll_fn(|context| Poll::Ready(first.as_mut().poll(context)));

        assert!(polled.await.is_pending());
        assert_eq!(
            (rig.pool.status().waiting, rig.pool.status().acquired),
            (1, 0)
        );
    })
    .await;
}
