//! Timeout against hand-over: a waiter is served at the last moment or times out, and nothing is
//! lost.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::AcquireError;
use shuttle::future::block_on;
use shuttle::thread;

use crate::explore;
use crate::oracle::Watched;
use crate::world::{
    Acquired, Pooled, acquire, assert_at_rest, join, outside, outside_with, pool_of, thread_with,
    visitor,
};

/// In the model's time the alarm may go off at any moment.
const SOON: Duration = Duration::from_millis(10);

/// Returns whether the caller was served. If not, it timed out.
fn served(acquired: Acquired) -> bool {
    match acquired {
        Ok(lease) => lease.serial == 1,
        Err(AcquireError::TimedOut(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

/// An acquire with a deadline, under the oracle.
fn hurried(pool: &Pooled) -> Watched<'_> {
    Watched::new(pool, pool.acquire_within(SOON))
}

fn impatient(pool: &Pooled) -> thread::JoinHandle<bool> {
    thread_with(pool, |pool| served(block_on(hurried(pool))))
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
fn the_waiter_behind_one_that_times_out_is_served() {
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
fn a_waiter_times_out_if_no_resource_comes_back() {
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

        let blocked = outside_with(&pool, |pool| served(pool.acquire_blocking_within(SOON)));
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

#[test]
fn every_waiter_of_a_crowd_times_out_if_no_resource_comes_back() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let crowd = [(); 3].map(|()| impatient(&pool));

        assert_eq!(join(crowd), [false; 3]);
        assert_eq!(pool.status().timed_out, 3);
        drop(held);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_crowd_that_times_out_against_a_release_loses_nothing() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let crowd = [(); 3].map(|()| impatient(&pool));
        let patient = visitor(&pool);
        outside(move || drop(held)).join().unwrap();
        let served = join(crowd);

        assert_eq!(patient.join().unwrap(), 1);
        let late = served.iter().filter(|served| !**served).count();
        assert_eq!(pool.status().timed_out, late as u64);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn the_other_waiters_of_a_crowd_time_out_although_one_leaves() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let leaves = thread_with(&pool, |pool| {
            let mut acquiring = Box::pin(hurried(pool));
            block_on(poll_fn(|context| {
                let _ = acquiring.as_mut().poll(context);
                Poll::Ready(())
            }));
            thread::yield_now();
            drop(acquiring);
        });

        let crowd = [(); 2].map(|()| impatient(&pool));

        leaves.join().unwrap();
        assert_eq!(join(crowd), [false; 2]);
        drop(held);
        assert_at_rest(&pool, &backend, 1);
    });
}

/// The next callers get the seats of the waiters that timed out.
#[test]
fn a_caller_that_comes_after_a_crowd_timed_out_is_served() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let crowd = [(); 3].map(|()| {
            thread_with(&pool, |pool| {
                for _ in 0..2 {
                    served(block_on(hurried(pool)));
                }
            })
        });
        let release = outside(move || drop(held));
        join(crowd);
        release.join().unwrap();

        assert_eq!(acquire(&pool).serial, 1);
        assert_at_rest(&pool, &backend, 1);
    });
}

/// The forgotten acquire is not polled again, whether it was granted the resource or not.
#[test]
fn a_forgotten_acquire_does_not_keep_the_resource_from_the_next_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let mut forgotten = Box::pin(hurried(&pool));
        let mut context = Context::from_waker(Waker::noop());
        assert!(forgotten.as_mut().poll(&mut context).is_pending());

        let next = visitor(&pool);
        let release = outside(move || drop(held));

        assert_eq!(next.join().unwrap(), 1);
        release.join().unwrap();
        drop(forgotten);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn every_waiter_of_a_crowd_is_told_of_its_timeout_or_of_the_close() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let crowd = [(); 3].map(|()| thread_with(&pool, |pool| block_on(hurried(pool)).is_err()));

        let close = outside_with(&pool, Pooled::close);

        assert_eq!(join(crowd), [true; 3]);
        close.join().unwrap();
        drop(held);
        assert_at_rest(&pool, &backend, 1);
    });
}
