//! Reserved places: each is given once, none is lost, and every waiter is woken.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use cenote::{AcquireError, Permit};
use shuttle::future::block_on;
use shuttle::thread::JoinHandle;

use crate::explore;
use crate::world::{
    Maker, Pooled, acquire, assert_at_rest, join, outside, pool_of, thread_with, visitor,
};

/// Waits for a place as long as it takes. If a wake-up is lost, shuttle reports a deadlock.
fn reserve(pool: &Pooled) -> Permit<Maker> {
    block_on(pool.reserve()).expect("the pool stays open")
}

/// A thread that reserves a place and exchanges it for a resource, which it gives back at once.
fn guest(pool: &Pooled) -> JoinHandle<u64> {
    thread_with(pool, |pool| {
        let permit = reserve(pool);
        let status = pool.status();
        assert!(status.in_use + status.reserved <= status.max_size);
        let lease = block_on(permit.acquire());
        lease.expect("the pool stays open").serial
    })
}

#[test]
fn callers_that_reserve_and_callers_that_acquire_share_one_resource() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let threads = [guest(&pool), visitor(&pool), guest(&pool)];

        assert_eq!(join(threads), [1; 3]);
        assert_eq!(pool.status().reserved, 0);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn four_guests_share_two_places() {
    explore(|| {
        let (pool, backend) = pool_of(2);

        join([(); 4].map(|()| guest(&pool)));

        assert_eq!(pool.status().reserved, 0);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_permit_that_is_dropped_anywhere_serves_the_next_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let permit = reserve(&pool);

        let waiting = [visitor(&pool), guest(&pool)];
        outside(move || drop(permit)).join().unwrap();

        assert_eq!(join(waiting), [1; 2]);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_reservation_that_is_cancelled_during_a_release_passes_its_place_on() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let leaver = thread_with(&pool, |pool| {
            let mut reserving = pin!(pool.reserve());
            let mut context = Context::from_waker(Waker::noop());
            matches!(reserving.as_mut().poll(&mut context), Poll::Ready(Ok(_)))
        });
        let waiting = guest(&pool);
        outside(move || drop(held)).join().unwrap();

        leaver.join().unwrap();
        assert_eq!(waiting.join().unwrap(), 1);
        assert_eq!(pool.status().reserved, 0);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_close_tells_callers_that_reserve_and_permits() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let guests = [(); 2].map(|()| {
            thread_with(&pool, |pool| {
                let reserved = block_on(pool.reserve());
                let acquired = reserved.and_then(|permit| block_on(permit.acquire()));
                assert!(matches!(acquired, Ok(_) | Err(AcquireError::Closed { .. })));
            })
        });
        pool.close();

        join(guests);
        assert_eq!(pool.status().reserved, 0);
        backend.wait_until_empty();
    });
}
