//! The scope: what it holds, and how it ends.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use cenote::scope::{Bound, LazyScope, Scope};
use cenote::{Lease, scope};
use cenote_testkit::clock::settle;
use cenote_testkit::{Rig, cut};

use crate::support::rigs::bind_pinned;

/// Binds a resource, pins it and leaves it in the scope. Returns its id.
async fn pin(rig: &Rig) -> u64 {
    let bound = bind_pinned(&rig.pool).await;
    Lease::id(&bound)
}

#[tokio::test(start_paused = true)]
async fn outside_any_scope_each_use_is_an_acquire() {
    let rig = Rig::with_max_size(2);

    let mut bound = rig.pool.bind().await.unwrap();

    assert!(!Bound::pin(&mut bound), "there is nothing to pin it to");
    drop(bound);
    assert_eq!((rig.pool.status().idle, rig.pool.status().acquired), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_touches_nothing_acquires_nothing() {
    let rig = Rig::with_max_size(1);

    scope(async {}).await;

    assert_eq!(rig.pool.status().acquired, 0);
}

#[tokio::test(start_paused = true)]
async fn an_unpinned_resource_goes_back_after_each_use() {
    let rig = Rig::with_max_size(1);

    scope(async {
        drop(rig.pool.bind().await.unwrap());

        assert_eq!(rig.pool.status().idle, 1);
        assert!(!Scope::current().unwrap().is_pinned(&rig.pool));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pinned_resource_is_reused_until_the_scope_ends() {
    let rig = Rig::with_max_size(3);

    scope(async {
        let id = pin(&rig).await;

        assert_eq!(rig.pool.status().in_use, 1);
        assert!(Scope::current().unwrap().is_pinned(&rig.pool));
        for _ in 0..3 {
            assert_eq!(Lease::id(&rig.pool.bind().await.unwrap()), id);
        }
    })
    .await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.acquired, status.released), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn pins_are_counted() {
    let rig = Rig::with_max_size(1);

    scope(async {
        let mut bound = rig.pool.bind().await.unwrap();
        assert!(Bound::pin(&mut bound) && Bound::pin(&mut bound));
        drop(bound);
        assert_eq!(rig.pool.status().in_use, 1);

        let mut bound = rig.pool.bind().await.unwrap();
        Bound::unpin(&mut bound);
        drop(bound);
        assert_eq!(rig.pool.status().in_use, 1, "one pin is left");

        let mut bound = rig.pool.bind().await.unwrap();
        Bound::unpin(&mut bound);
        drop(bound);
        assert_eq!(rig.pool.status().idle, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_scope_ends_by_error_panic_and_cancellation() {
    let rig = Rig::with_max_size(1);

    let failed: Result<(), &str> = scope(async {
        pin(&rig).await;
        Err("no")
    })
    .await;
    assert_eq!((failed, rig.pool.status().idle), (Err("no"), 1));

    let panicking = scope(async {
        pin(&rig).await;
        panic!("on purpose");
    });
    let caught = futures_catch(panicking).await;
    assert!(caught.is_err());
    assert_eq!(rig.pool.status().idle, 1);

    let cancelled = cut(
        1,
        scope(async {
            pin(&rig).await;
            assert_eq!(rig.pool.status().in_use, 1);
            std::future::pending::<()>().await;
        }),
    );
    assert!(cancelled.await.is_none());
    assert_eq!(rig.pool.status().idle, 1);
    rig.assert_full_service().await;
}

/// Polls `future` and catches its panic.
async fn futures_catch<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_spawned_inside_does_not_inherit_the_scope() {
    let rig = std::sync::Arc::new(Rig::with_max_size(2));

    scope(async {
        let id = pin(&rig).await;
        let inner = rig.clone();

        let child = tokio::spawn(async move { Lease::id(&inner.pool.bind().await.unwrap()) });

        assert_ne!(child.await.unwrap(), id);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_scope_can_be_handed_to_another_task() {
    let rig = std::sync::Arc::new(Rig::with_max_size(2));

    scope(async {
        let id = pin(&rig).await;
        let (inner, handle) = (rig.clone(), Scope::current().unwrap());

        let child = tokio::spawn(async move {
            let bind = handle.run(async { Lease::id(&inner.pool.bind().await.unwrap()) });
            bind.await
        });

        assert_eq!(child.await.unwrap(), id);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handle_that_outlives_its_scope_is_outside_any() {
    let rig = Rig::with_max_size(2);

    let handle = scope(async {
        pin(&rig).await;
        Scope::current().unwrap()
    })
    .await;

    assert_eq!(rig.pool.status().idle, 1, "the handle keeps nothing");
    handle
        .run(async {
            let mut bound = rig.pool.bind().await.unwrap();
            assert!(!Bound::pin(&mut bound));
        })
        .await;
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_when_its_scope_ends_goes_back_after_its_use() {
    let rig = Rig::with_max_size(1);

    let kept = scope(async {
        pin(&rig).await;
        rig.pool.bind().await.unwrap()
    })
    .await;

    assert_eq!(rig.pool.status().in_use, 1);
    drop(kept);
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_scope_without_its_function_ends_with_its_last_handle() {
    let rig = Rig::with_max_size(1);
    let handle = Scope::new();

    handle.run(pin(&rig)).await;
    assert_eq!(rig.pool.status().in_use, 1);
    drop(handle);

    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_is_not_nested_sees_nothing_of_the_scope_around_it() {
    let rig = Rig::with_max_size(2);

    scope(async {
        let outer = pin(&rig).await;
        let inner = Scope::new();

        assert_ne!(inner.run(pin(&rig)).await, outer);
        assert_eq!(Lease::id(&rig.pool.bind().await.unwrap()), outer);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_pools_have_two_seats_in_one_scope() {
    let (one, other) = (Rig::with_max_size(1), Rig::with_max_size(1));

    scope(async {
        pin(&one).await;
        pin(&other).await;

        assert_eq!(
            (one.pool.status().in_use, other.pool.status().in_use),
            (1, 1)
        );
    })
    .await;

    assert_eq!((one.pool.status().idle, other.pool.status().idle), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_scope_keeps_no_pool_open() {
    let rig = Rig::with_max_size(1);
    let backend = rig.backend.clone();

    scope(async {
        pin(&rig).await;
        drop(rig);
        assert_eq!(backend.alive(), 1, "its lease is still out");
    })
    .await;
    settle().await;

    assert_eq!(backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_scope_inside_another_uses_the_resource_pinned_outside() {
    let rig = Rig::with_max_size(3);

    scope(async {
        let id = pin(&rig).await;
        for inner in [Scope::nested(), Scope::nested()] {
            inner
                .run(async { assert_eq!(Lease::id(&rig.pool.bind().await.unwrap()), id) })
                .await;
        }
        scope(async { assert_eq!(Lease::id(&rig.pool.bind().await.unwrap()), id) }).await;
        assert_eq!(rig.pool.status().in_use, 1, "it rests in the outer one");
    })
    .await;

    assert_eq!(rig.pool.status().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_pinned_inside_is_not_used_outside() {
    let rig = Rig::with_max_size(3);

    scope(async {
        let inner = Scope::nested();
        let pinned = inner.run(pin(&rig)).await;
        assert_ne!(Lease::id(&rig.pool.bind().await.unwrap()), pinned);
        inner.end();
    })
    .await;

    assert_eq!(rig.pool.status().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_scope_is_one_scope_for_all_calls_and_ends_when_it_is_dropped() {
    let rig = Rig::with_max_size(3);
    let mut lazy = LazyScope::new();
    let mut work = Box::pin(async {
        let id = pin(&rig).await;
        tokio::task::yield_now().await;
        assert_eq!(Lease::id(&rig.pool.bind().await.unwrap()), id);
    });

    poll_fn(|context| lazy.enter(|| work.as_mut().poll(context))).await;

    assert_eq!(rig.pool.status().in_use, 1, "it rests in the scope");
    drop(lazy);
    assert_eq!(rig.pool.status().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_scope_keeps_the_resource_bound_in_a_call_that_panics() {
    let rig = Rig::with_max_size(3);
    let mut lazy = LazyScope::new();
    drop(rig.acquire().await);
    let mut work = Box::pin(async {
        pin(&rig).await;
        panic!("in the middle of it");
    });
    let mut context = Context::from_waker(Waker::noop());

    let call = AssertUnwindSafe(|| {
        lazy.enter(|| {
            let _: Poll<()> = work.as_mut().poll(&mut context);
        })
    });
    assert!(catch_unwind(call).is_err());

    assert_eq!(rig.pool.status().in_use, 1, "it rests in the scope");
    drop(lazy);
    assert_eq!(rig.pool.status().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_scope_inside_another_uses_the_resource_pinned_outside() {
    let rig = Rig::with_max_size(3);

    scope(async {
        let id = pin(&rig).await;
        let mut lazy = LazyScope::new();
        let mut work = Box::pin(async { Lease::id(&rig.pool.bind().await.unwrap()) });

        let met = poll_fn(|context| lazy.enter(|| work.as_mut().poll(context))).await;

        assert_eq!(met, id);
    })
    .await;
}
