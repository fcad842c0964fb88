//! Acquire against release: every waiter is served, in order.

use std::sync::Arc;
use std::task::{Context, Waker};

use shuttle::future;
use shuttle::sync::Mutex;

use crate::explore;
use crate::world::{
    ByHand, acquire, assert_at_rest, blocked, join, outside, outside_with, pool_of, thread_with,
    visitor,
};

#[test]
fn two_threads_share_one_resource() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let other = visitor(&pool);
        let mine = acquire(&pool).serial;

        assert_eq!((mine, other.join().unwrap()), (1, 1));
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn three_threads_share_one_resource() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let visitors = [(); 3].map(|()| visitor(&pool));

        for visitor in visitors {
            assert_eq!(visitor.join().unwrap(), 1);
        }
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn four_threads_share_two_resources_twice() {
    explore(|| {
        let (pool, backend) = pool_of(2);

        let threads = [(); 4].map(|()| {
            thread_with(&pool, |pool| {
                drop(acquire(pool));
                drop(acquire(pool));
            })
        });
        join(threads);

        assert_eq!(pool.status().acquired, 8);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_release_outside_every_runtime_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        outside(move || drop(held)).join().unwrap();

        assert_eq!(waiting.join().unwrap(), 1);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn several_releases_serve_as_many_waiters() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire(&pool), acquire(&pool)];

        let waiting = [(); 3].map(|()| visitor(&pool));
        let releases = held.map(|lease| outside(move || drop(lease)));

        join(waiting);
        join(releases);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn the_first_waiter_is_served_first_and_no_newcomer_passes_it() {
    explore(|| {
        let (pool, _) = pool_of(1);
        let held = acquire(&pool);
        let mut first = ByHand::join(&pool);
        let served = Arc::new(Mutex::new(Vec::new()));

        let newcomers = [2, 3].map(|number| {
            let served = Arc::clone(&served);
            thread_with(&pool, move |pool| {
                let lease = acquire(pool);
                served.lock().unwrap().push(number);
                drop(lease);
            })
        });
        let tries = outside_with(&pool, |pool| pool.try_acquire().unwrap().is_some());
        outside(move || drop(held)).join().unwrap();
        assert!(!tries.join().unwrap(), "a try passed a waiter");
        assert!(
            served.lock().unwrap().is_empty(),
            "a newcomer passed a waiter"
        );

        assert!(first.is_woken(), "served, and not woken");
        assert!(first.poll().is_ready());
        join(newcomers);
    });
}

#[test]
fn blocked_threads_are_woken_by_releases() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let threads = [(); 3].map(|()| blocked(&pool));

        for thread in threads {
            assert_eq!(thread.join().unwrap(), 1);
        }
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_blocked_thread_and_a_task_serve_each_other() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let blocked = blocked(&pool);
        drop(acquire(&pool));
        blocked.join().unwrap();

        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_waiter_that_is_polled_with_another_waker_is_still_woken() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let waiting = {
            let pool = pool.clone();
            // Polled once by hand, and then by a task with a waker of its own.
            let mut acquiring = Box::pin(async move { pool.acquire().await.unwrap().serial });
            let mut context = Context::from_waker(Waker::noop());
            assert!(acquiring.as_mut().poll(&mut context).is_pending());
            acquiring
        };

        let release = outside(move || drop(held));
        let served = future::block_on(future::spawn(waiting));

        assert_eq!(served.unwrap(), 1);
        release.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_resource_that_must_be_cleaned_serves_the_waiters() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let mut held = acquire(&pool);
        held.dirty = true;

        let waiting = [visitor(&pool), visitor(&pool)];
        outside(move || drop(held)).join().unwrap();

        assert_eq!(join(waiting), [1, 1]);
        assert_at_rest(&pool, &backend, 1);
    });
}
