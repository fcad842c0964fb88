//! Timeout against hand-off: at the last moment it is served or it is not, and either way nothing is lost.

use std::time::Duration;

use cenote::AcquireError;
use shuttle::future::block_on;
use shuttle::thread;

use crate::explore;
use crate::world::{Acquired, Pooled, acquire, assert_at_rest, outside, pool_of, visitor};

/// Soon, as the model sees it: the timer may ring at any moment.
const SOON: Duration = Duration::from_millis(10);

/// Whether it was served.
fn served(acquired: Acquired) -> bool {
    match acquired {
        Ok(lease) => lease.serial == 1,
        Err(AcquireError::TimedOut(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

fn impatient(pool: &Pooled) -> thread::JoinHandle<bool> {
    let pool = pool.clone();
    thread::spawn(move || served(block_on(pool.acquire_timeout(SOON))))
}

#[test]
fn a_timeout_against_a_release_loses_nothing() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let impatient = impatient(&pool);
        outside(move || drop(held)).join().unwrap();
        let served = impatient.join().unwrap();

        let status = pool.status();
        assert_eq!(status.timed_out, u64::from(!served));
        assert_eq!(status.idle, 1);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn behind_one_who_times_out_the_next_is_served() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let impatient = impatient(&pool);
        let patient = visitor(&pool);
        let release = outside(move || drop(held));

        impatient.join().unwrap();
        assert_eq!(patient.join().unwrap(), 1);
        release.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn who_waits_for_nothing_times_out() {
    explore(|| {
        let (pool, _) = pool_of(1);
        let _held = acquire(&pool);

        let served = impatient(&pool).join().unwrap();

        assert!(!served);
        assert_eq!(pool.status().waiting, 0);
    });
}

#[test]
fn a_blocked_thread_that_times_out_loses_nothing() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let blocked = {
            let pool = pool.clone();
            outside(move || served(pool.acquire_blocking_timeout(SOON)))
        };
        let patient = visitor(&pool);
        let release = outside(move || drop(held));

        blocked.join().unwrap();
        assert_eq!(patient.join().unwrap(), 1);
        release.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_timeout_during_an_open_leaves_the_resource_to_the_next() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        impatient(&pool).join().unwrap();

        assert!(acquire(&pool).serial <= 2);
        assert_at_rest(&pool, &backend, 1);
    });
}
