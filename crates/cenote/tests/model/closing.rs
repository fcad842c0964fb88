//! Closing: every waiter is told, every resource is closed, and no caller is stuck.

use std::task::Poll;
use std::time::Duration;

use cenote::{AcquireError, Lease};
use shuttle::future::block_on;
use shuttle::thread;

use crate::world::{
    Acquired, ByHand, Pooled, acquire, caller, join, outside, pool, pool_of, thread_with,
};
use crate::{exhaust, explore};

/// Far beyond the model's time: the wait ends because all resources are closed, or never.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Closes the pool, and waits until all resources are closed.
fn drain(pool: &Pooled) {
    let left = block_on(pool.close_within(FOR_EVER));
    assert!(left.is_empty(), "{left:?}");
}

/// The caller was served, or told that the pool is closed.
fn assert_served_or_closed(acquired: Acquired) {
    match acquired {
        Ok(lease) => drop(lease),
        Err(AcquireError::Closed { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_close_during_an_open_leaves_nothing_behind() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let acquiring = caller(&pool);
        pool.close();
        assert_served_or_closed(acquiring.join().unwrap());
        drain(&pool);

        assert_eq!(backend.wait_until_empty() as u64, backend.opened());
    });
}

#[test]
fn a_close_against_acquires_and_a_release_tells_every_caller() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let callers = [caller(&pool), caller(&pool)]
            .map(|caller| thread::spawn(move || assert_served_or_closed(caller.join().unwrap())));
        let release = outside(move || drop(held));
        drain(&pool);

        join(callers);
        release.join().unwrap();
        assert_eq!(backend.wait_until_empty(), 1);
        assert_eq!(backend.opened(), 1);
    });
}

#[test]
fn a_waiter_that_has_not_claimed_its_grant_is_told_of_the_close() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let mut granted = ByHand::join(&pool);

        let release = outside(move || drop(held));
        drain(&pool);
        release.join().unwrap();

        assert!(granted.is_woken(), "told, and not woken");
        let Poll::Ready(told) = granted.poll() else {
            panic!("it was not told");
        };
        assert!(matches!(told, Err(AcquireError::Closed { .. })));
        assert_eq!(backend.wait_until_empty(), 1);
    });
}

#[test]
fn two_closes_at_once_close_each_resource_once() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = acquire(&pool);

        let other = thread_with(&pool, drain);
        let release = outside(move || drop(held));
        drain(&pool);

        other.join().unwrap();
        release.join().unwrap();
        assert_eq!(backend.wait_until_empty(), 1);
    });
}

#[test]
fn the_resource_of_a_lease_that_outlives_its_pool_is_closed() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire(&pool), acquire(&pool)];

        let releases = held.map(|lease| outside(move || drop(lease)));
        outside(move || drop(pool)).join().unwrap();
        join(releases);

        assert_eq!(backend.wait_until_empty(), 2, "closed, not only dropped");
    });
}

#[test]
fn the_upkeep_task_ends_after_the_last_lease_and_the_last_handle() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let release = outside(move || Lease::discard(held));
        drop(pool);
        release.join().unwrap();

        assert_eq!(backend.wait_until_empty(), 1, "closed, not only dropped");
    });
}

#[test]
fn a_weak_handle_that_is_upgraded_during_the_last_drop_works_or_is_none() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let weak = pool.downgrade();

        let last = outside(move || drop(pool));
        if let Some(pool) = weak.upgrade() {
            drop(acquire(&pool));
        }
        last.join().unwrap();

        assert!(weak.upgrade().is_none());
        backend.wait_until_empty();
    });
}

#[test]
fn a_pool_is_open_as_long_as_an_upgraded_handle_is_left() {
    exhaust(|| {
        let (pool, _) = pool_of(1);
        let weak = pool.downgrade();

        let last = outside(move || drop(pool));
        let upgraded = weak.upgrade();

        if let Some(pool) = &upgraded {
            assert!(!pool.is_closed(), "a handle is left");
        }
        last.join().unwrap();
        drop(upgraded);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn a_warm_up_ends_when_the_pool_closes() {
    explore(|| {
        let (pool, backend) = pool(|pool| pool.max_size(2).min_size(2));

        let warming = thread_with(&pool, |pool| drop(block_on(pool.warm())));
        drain(&pool);
        warming.join().unwrap();

        assert_eq!(backend.wait_until_empty() as u64, backend.opened());
    });
}
