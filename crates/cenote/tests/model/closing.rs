//! Closing: everybody is told, everything is closed, and nobody is stuck.

use std::task::Poll;
use std::time::Duration;

use cenote::{AcquireError, Lease};
use shuttle::future::block_on;
use shuttle::thread;

use crate::world::{Acquired, ByHand, Pooled, acquire, caller, join, outside, pool, pool_of};
use crate::{exhaust, explore};

/// Far beyond the model's time: the wait ends because all is closed, or it is stuck.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Closes, and waits until all is closed.
fn drain(pool: &Pooled) {
    let left = block_on(pool.close_within(FOR_EVER));
    assert!(left.is_empty(), "{left:?}");
}

/// Lent, or told that the pool is closed: nothing else.
fn end(acquired: Acquired) {
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
        end(acquiring.join().unwrap());
        drain(&pool);

        assert_eq!(backend.wait_until_empty() as u64, backend.opened());
    });
}

#[test]
fn a_close_against_acquires_and_a_release_tells_everybody() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let callers = [caller(&pool), caller(&pool)]
            .map(|caller| thread::spawn(move || end(caller.join().unwrap())));
        let release = outside(move || drop(held));
        drain(&pool);

        join(callers);
        release.join().unwrap();
        assert_eq!(backend.wait_until_empty(), 1);
        assert_eq!(backend.opened(), 1);
    });
}

#[test]
fn who_was_granted_something_and_did_not_take_it_is_told_of_the_close() {
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
fn two_closes_are_one() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = acquire(&pool);

        let other = {
            let pool = pool.clone();
            thread::spawn(move || drain(&pool))
        };
        let release = outside(move || drop(held));
        drain(&pool);

        other.join().unwrap();
        release.join().unwrap();
        assert_eq!(backend.wait_until_empty(), 1);
    });
}

#[test]
fn a_lease_that_outlives_its_pool_is_closed_when_it_comes_home() {
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
fn the_last_lease_and_the_last_handle_go_at_once_and_the_upkeep_task_ends_after_them() {
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
fn a_weak_handle_that_is_upgraded_during_the_last_drop_is_whole_or_nothing() {
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
fn of_a_weak_handle_and_the_last_one_exactly_one_closes_the_pool() {
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

        let warming = {
            let pool = pool.clone();
            thread::spawn(move || drop(block_on(pool.warm())))
        };
        drain(&pool);
        warming.join().unwrap();

        assert_eq!(backend.wait_until_empty() as u64, backend.opened());
    });
}
