//! A pinned resource of a scope: it is lent to one user at a time, in order, and moves between
//! scopes.

use std::cell::RefCell;
use std::time::Duration;

use cenote::scope::{BindError, Bound, Scope};
use cenote::{Lease, scope};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Rig, cut};

use crate::support::rigs::bind_pinned;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn concurrent_users_of_one_scope_take_turns_in_order() {
    let rig = Rig::with_max_size(3);
    let order = RefCell::new(Vec::new());

    scope(async {
        let first = bind_pinned(&rig.pool).await;
        let turn = async |name: &'static str| {
            let bound = rig.pool.bind().await.unwrap();
            order.borrow_mut().push(name);
            tokio::task::yield_now().await;
            Lease::id(&bound)
        };

        let ((), a, b, c) = tokio::join!(
            async {
                tokio::task::yield_now().await;
                drop(first);
            },
            turn("a"),
            turn("b"),
            turn("c"),
        );

        assert_eq!((a, b, c), (1, 1, 1), "all of them met the pinned one");
    })
    .await;

    assert_eq!(*order.borrow(), ["a", "b", "c"]);
    assert_eq!(rig.pool.status().acquired, 1);
}

#[tokio::test(start_paused = true)]
async fn an_unpinned_resource_is_not_waited_for() {
    let rig = Rig::with_max_size(2);

    scope(async {
        let one = rig.pool.bind().await.unwrap();
        let other = rig.pool.bind().await.unwrap();

        assert_ne!(Lease::id(&one), Lease::id(&other));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_one_resource_of_a_pool_can_be_pinned() {
    let rig = Rig::with_max_size(2);

    scope(async {
        let mut one = rig.pool.bind().await.unwrap();
        let mut other = rig.pool.bind().await.unwrap();

        assert!(Bound::pin(&mut one));
        assert!(!Bound::pin(&mut other));
        drop(other);
        assert_eq!(rig.pool.status().idle, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_resource_bound_by_the_same_task_ends_and_says_where_it_was_bound() {
    let rig = Rig::new(|pool| pool.max_size(2).acquire_timeout(SECOND));

    scope(async {
        let mut held = rig.pool.bind().await.unwrap();
        let line = line!() - 1;
        Bound::pin(&mut held);

        let (error, waited) = timed(rig.pool.bind()).await;

        assert_eq!(waited, SECOND);
        let error = error.unwrap_err();
        let shown = error.to_string();
        let BindError::InUse { site, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((site.file(), site.line()), (file!(), line));
        assert!(shown.contains(&site.to_string()), "{shown}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_passes_its_turn_on() {
    let rig = Rig::with_max_size(1);

    scope(async {
        let held = bind_pinned(&rig.pool).await;
        let mut gives_up = Box::pin(cut(2, rig.pool.bind()));
        let mut waits = Box::pin(rig.pool.bind());
        assert!(poll_once(&mut gives_up).await.is_none());
        assert!(poll_once(&mut waits).await.is_none());

        drop(held);
        drop(gives_up);

        assert_eq!(Lease::id(&waits.await.unwrap()), 1);
    })
    .await;
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    cut(1, future).await
}

#[tokio::test(start_paused = true)]
async fn a_waiter_goes_on_without_the_scope_when_it_ends() {
    let rig = Rig::with_max_size(2);
    let handle = Scope::new();
    let held = handle.run(async { bind_pinned(&rig.pool).await });
    let held = held.await;
    let mut waits = Box::pin(handle.run(rig.pool.bind()));
    assert!(poll_once(&mut waits).await.is_none());

    handle.end();

    assert_eq!(Lease::id(&waits.await.unwrap()), 2);
    drop(held);
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn peeking_acquires_nothing() {
    let rig = Rig::with_max_size(1);

    scope(async {
        let here = Scope::current().unwrap();
        assert!(here.peek(&rig.pool).is_none());
        assert_eq!(rig.pool.status().acquired, 0);

        let bound = bind_pinned(&rig.pool).await;
        assert!(here.peek(&rig.pool).is_none(), "it is in use");
        drop(bound);

        assert_eq!(Lease::id(&here.peek(&rig.pool).unwrap()), 1);
        assert_eq!(rig.pool.status().acquired, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_resource_is_replaced_on_the_next_use() {
    let rig = Rig::with_max_size(1);

    scope(async {
        let bound = bind_pinned(&rig.pool).await;
        Bound::discard(bound);
        settle().await;

        assert_eq!(Lease::id(&rig.pool.bind().await.unwrap()), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_an_inner_scope_adopted_goes_back_to_the_outer() {
    let rig = Rig::with_max_size(2);

    scope(async {
        let bound = bind_pinned(&rig.pool).await;
        let inner = Scope::new();
        inner.adopt(&rig.pool, bound).unwrap();

        let met = inner.run(async { Lease::id(&rig.pool.bind().await.unwrap()) });
        assert_eq!(met.await, 1);
        let mut outside = Box::pin(rig.pool.bind());
        assert!(
            poll_once(&mut outside).await.is_none(),
            "the inner scope has it"
        );
        inner.end();

        assert_eq!(Lease::id(&outside.await.unwrap()), 1);
    })
    .await;
    assert_eq!(rig.pool.status().acquired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_when_an_inner_scope_ends_goes_back_to_the_outer() {
    let rig = Rig::with_max_size(2);

    scope(async {
        let bound = bind_pinned(&rig.pool).await;
        let inner = Scope::new();
        inner.adopt(&rig.pool, bound).unwrap();
        let kept = inner.run(rig.pool.bind()).await.unwrap();

        inner.end();
        advance(SECOND).await;
        assert!(Scope::current().unwrap().peek(&rig.pool).is_none());
        drop(kept);

        assert_eq!(
            Lease::id(&Scope::current().unwrap().peek(&rig.pool).unwrap()),
            1
        );
    })
    .await;
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_seat_that_is_taken_adopts_nothing() {
    let rig = Rig::with_max_size(2);

    scope(async {
        let one = bind_pinned(&rig.pool).await;
        drop(one);
        let other = rig.pool.acquire().await.unwrap();
        drop(other);
        let free = Scope::new().run(rig.pool.bind()).await.unwrap();

        let refused = Scope::current().unwrap().adopt(&rig.pool, free);

        assert_eq!(Lease::id(&refused.unwrap_err()), 2);
    })
    .await;
}
