//! Cancelling: a waiter that leaves passes its grant on to the next.

use cenote::Lease;
use shuttle::future;

use crate::explore;
use crate::world::{ByHand, acquire, assert_at_rest, join, outside, pool_of, visitor};

#[test]
fn a_grant_to_a_waiter_that_leaves_goes_to_the_next() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let granted = ByHand::join(&pool);

        let next = visitor(&pool);
        let release = outside(move || drop(held));
        drop(granted);

        assert_eq!(next.join().unwrap(), 1, "the same resource");
        release.join().unwrap();
        assert_eq!(backend.opened(), 1);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_grant_to_a_waiter_that_is_never_polled_goes_to_the_next() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let granted = ByHand::join(&pool);
        drop(held);

        let next = visitor(&pool);
        drop(granted);

        assert_eq!(next.join().unwrap(), 1, "the same resource");
        assert_eq!(backend.opened(), 1);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn several_cancelled_waiters_lose_nothing() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire(&pool), acquire(&pool)];
        let leaving = [ByHand::join(&pool), ByHand::join(&pool)];

        let staying = [visitor(&pool), visitor(&pool)];
        let releases = held.map(|lease| outside(move || drop(lease)));
        drop(leaving);

        join(staying);
        join(releases);
        assert_eq!(backend.opened(), 2);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn an_aborted_task_passes_its_turn_on() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let doomed = {
            let pool = pool.clone();
            future::spawn(async move { drop(pool.acquire().await) })
        };

        let staying = visitor(&pool);
        let release = outside(move || drop(held));
        doomed.abort();

        assert_eq!(staying.join().unwrap(), 1);
        // It was aborted, or served before that.
        let _ = future::block_on(doomed);
        release.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_resource_that_is_opened_for_a_waiter_that_left_serves_the_next() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let left = ByHand::join(&pool);

        let next = visitor(&pool);
        drop(left);

        next.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn an_awaited_release_that_is_cancelled_loses_nothing() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let mut held = acquire(&pool);
        held.dirty = true;

        let waiting = visitor(&pool);
        let releasing = future::spawn(Lease::release(held));
        releasing.abort();

        waiting.join().unwrap();
        // It was aborted, or done before that.
        let _ = future::block_on(releasing);
        assert_at_rest(&pool, &backend, 1);
    });
}
