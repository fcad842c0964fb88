//! Timeout against hand-off: at the last moment it is served or it is not, and either way nothing is lost.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::AcquireError;
use shuttle::future::block_on;
use shuttle::thread;

use crate::explore;
use crate::oracle::Watched;
use crate::world::{Acquired, Pooled, acquire, assert_at_rest, join, outside, pool_of, visitor};

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

/// An acquire that is soon out of time, under the oracle.
fn hurried(pool: &Pooled) -> Watched<'_> {
    Watched::new(pool, pool.acquire_timeout(SOON))
}

fn impatient(pool: &Pooled) -> thread::JoinHandle<bool> {
    let pool = pool.clone();
    thread::spawn(move || served(block_on(hurried(&pool))))
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

/// All run out of time at once, and one of them tells the others.
#[test]
fn a_crowd_that_waits_for_nothing_times_out_to_the_last() {
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

/// The one who has to tell the others may be gone before.
#[test]
fn a_crowd_that_times_out_is_told_also_if_one_of_them_leaves() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let leaves = {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut acquiring = Box::pin(hurried(&pool));
                block_on(poll_fn(|context| {
                    let _ = acquiring.as_mut().poll(context);
                    Poll::Ready(())
                }));
                thread::yield_now();
                drop(acquiring);
            })
        };

        let crowd = [(); 2].map(|()| impatient(&pool));

        leaves.join().unwrap();
        assert_eq!(join(crowd), [false; 2]);
        drop(held);
        assert_at_rest(&pool, &backend, 1);
    });
}

/// One who was told leaves its seat without a word, and the next who comes gets it.
#[test]
fn who_comes_after_a_crowd_timed_out_is_served() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let twice = |pool: &Pooled| {
            let pool = pool.clone();
            thread::spawn(move || {
                let first = served(block_on(hurried(&pool)));
                (first, served(block_on(hurried(&pool))))
            })
        };

        let crowd = [(); 3].map(|()| twice(&pool));
        let release = outside(move || drop(held));
        join(crowd);
        release.join().unwrap();

        assert_eq!(acquire(&pool).serial, 1);
        assert_at_rest(&pool, &backend, 1);
    });
}

/// Whether it was served before its deadline or not: it is never polled again, and keeps nothing.
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
fn a_close_against_a_crowd_that_times_out_tells_everybody() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let crowd = [(); 3].map(|()| {
            let pool = pool.clone();
            thread::spawn(move || block_on(hurried(&pool)).is_err())
        });

        let close = {
            let pool = pool.clone();
            outside(move || pool.close())
        };

        assert_eq!(join(crowd), [true; 3]);
        close.join().unwrap();
        drop(held);
        assert_at_rest(&pool, &backend, 1);
    });
}
