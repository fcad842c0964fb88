//! What is done to the whole pool while somebody waits: resize, invalidate, retain, suspend, the breaker.

use cenote::AcquireError;
use shuttle::thread;

use crate::explore;
use crate::world::{acquire, assert_at_rest, caller, join, outside, pool_of, visitor};

#[test]
fn a_pool_that_shrinks_while_leases_come_home_still_serves() {
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
fn a_pool_that_grows_serves_who_waits() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        let growing = {
            let pool = pool.clone();
            outside(move || pool.resize(2).unwrap())
        };

        assert_eq!(waiting.join().unwrap(), 2);
        growing.join().unwrap();
        drop(held);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn an_invalidated_resource_is_replaced_for_who_waits() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);
        let waiting = visitor(&pool);
        let invalidating = {
            let pool = pool.clone();
            outside(move || pool.invalidate())
        };

        outside(move || drop(held)).join().unwrap();

        waiting.join().unwrap();
        invalidating.join().unwrap();
        assert_eq!(acquire(&pool).serial, 2);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn what_retain_looks_at_comes_to_who_waits() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        drop(acquire(&pool));

        let waiting = visitor(&pool);
        let looking = {
            let pool = pool.clone();
            outside(move || pool.retain(|thing| thing.serial > 1))
        };

        waiting.join().unwrap();
        looking.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn who_waits_for_a_suspended_pool_is_served_when_it_resumes() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        pool.suspend();

        let waiting = visitor(&pool);
        let resuming = {
            let pool = pool.clone();
            outside(move || pool.resume())
        };

        assert_eq!(waiting.join().unwrap(), 1);
        resuming.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn when_the_breaker_trips_everybody_is_served_or_told() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let callers = [caller(&pool), caller(&pool)].map(|caller| {
            thread::spawn(move || match caller.join().unwrap() {
                Ok(lease) => drop(lease),
                Err(AcquireError::Unavailable { .. }) => {}
                Err(other) => panic!("{other}"),
            })
        });
        let release = outside(move || drop(held));
        pool.deactivate();

        join(callers);
        release.join().unwrap();
        pool.activate();
        assert_eq!(acquire(&pool).serial, 1, "nothing healthy is closed");
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn one_probe_after_another_is_lent_while_the_breaker_recovers() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        pool.recover();

        let callers = [visitor(&pool), visitor(&pool)];
        drop(acquire(&pool));

        join(callers);
        assert_at_rest(&pool, &backend, 2);
    });
}
