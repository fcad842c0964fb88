//! Operations on the whole pool while a caller waits: resize, invalidate, retain, suspend, and the
//! breaker.

use cenote::AcquireError;
use shuttle::thread;

use crate::explore;
use crate::world::{
    Pooled, acquire, assert_at_rest, caller, join, outside, outside_with, pool_of, visitor,
};

#[test]
fn a_pool_that_shrinks_while_leases_end_still_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire(&pool), acquire(&pool)];

        let waiting = visitor(&pool);
        let releases = held.map(|lease| outside(move || drop(lease)));
        pool.resize(1).unwrap();

        waiting.join().unwrap();
        join(releases);
        let status = pool.status();
        assert!(status.total <= 1, "{status:?}");
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_pool_that_grows_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        let growing = outside_with(&pool, |pool| pool.resize(2).unwrap());

        assert_eq!(waiting.join().unwrap(), 2);
        growing.join().unwrap();
        drop(held);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn an_invalidated_resource_is_replaced_for_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let waiting = visitor(&pool);
        let invalidating = outside_with(&pool, Pooled::invalidate);

        outside(move || drop(held)).join().unwrap();

        waiting.join().unwrap();
        invalidating.join().unwrap();
        assert_eq!(acquire(&pool).serial, 2);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_resource_that_retain_looks_at_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        drop(acquire(&pool));

        let waiting = visitor(&pool);
        let looking = outside_with(&pool, |pool| pool.retain(|thing| thing.serial > 1));

        waiting.join().unwrap();
        looking.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_waiter_of_a_suspended_pool_is_served_when_it_resumes() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        pool.suspend();

        let waiting = visitor(&pool);
        let resuming = outside_with(&pool, Pooled::resume);

        assert_eq!(waiting.join().unwrap(), 1);
        resuming.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn when_the_breaker_trips_every_caller_is_served_or_told() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let callers = [caller(&pool), caller(&pool)].map(|caller| {
            thread::spawn(move || match caller.join().unwrap() {
                Ok(lease) => drop(lease),
                Err(AcquireError::Unavailable(_)) => {}
                Err(other) => panic!("{other}"),
            })
        });
        let release = outside(move || drop(held));
        pool.breaker().trip();

        join(callers);
        release.join().unwrap();
        pool.breaker().reset();
        assert_eq!(acquire(&pool).serial, 1, "a healthy resource is not closed");
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn probes_are_lent_one_after_another_while_the_breaker_recovers() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        pool.breaker().probe();

        let callers = [visitor(&pool), visitor(&pool)];
        drop(acquire(&pool));

        join(callers);
        assert_at_rest(&pool, &backend, 2);
    });
}
