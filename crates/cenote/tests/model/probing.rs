//! A recovering breaker: the pool's own probe comes first, and every waiter is served or told.

use std::time::{Duration, Instant};

use cenote::AcquireError;
use cenote::breaker::{BreakerState, Failed, Recovery, SharedBreaker, Strategy, Verdict};

use shuttle::thread;

use crate::explore;
use crate::world::{Acquired, assert_at_rest, caller, join, pool, pool_of, thread_with, visitor};

/// Activates at the first success.
struct Trusting;

impl Strategy for Trusting {
    fn report_success(&self, _: BreakerState, _: Instant) -> Verdict {
        Verdict::Activate
    }

    fn report_failure(&self, _: BreakerState, _: &Failed<'_>, _: Instant) -> Verdict {
        Verdict::Deactivate
    }

    fn should_recover(&self, _: Duration) -> Recovery {
        Recovery::Now
    }
}

/// Never decides.
struct Indifferent;

impl Strategy for Indifferent {
    fn report_success(&self, _: BreakerState, _: Instant) -> Verdict {
        Verdict::Keep
    }

    fn report_failure(&self, _: BreakerState, _: &Failed<'_>, _: Instant) -> Verdict {
        Verdict::Keep
    }

    fn should_recover(&self, inactive_for: Duration) -> Recovery {
        Recovery::After(inactive_for.max(Duration::from_secs(3600)))
    }
}

fn assert_served_or_told(acquired: Acquired) {
    match acquired {
        Ok(lease) => drop(lease),
        Err(AcquireError::Unavailable(_)) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn waiters_are_served_after_the_pools_own_probe() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        pool.breaker().probe();

        let visitors = [visitor(&pool), visitor(&pool)];

        join(visitors);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn the_probe_activates_the_breaker_by_its_strategy() {
    explore(|| {
        let (pool, backend) = pool(|builder| builder.max_size(2).breaker(Trusting));
        pool.breaker().trip();

        let prober = thread_with(&pool, |pool| pool.breaker().probe());
        prober.join().unwrap();
        join([visitor(&pool), visitor(&pool)]);

        assert_eq!(pool.breaker().state(), BreakerState::Active);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_probe_against_a_trip_and_a_reset_leaves_no_waiter_behind() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        pool.breaker().probe();

        let callers = [caller(&pool), caller(&pool)]
            .map(|caller| thread::spawn(move || assert_served_or_told(caller.join().unwrap())));
        let tripped = thread_with(&pool, |pool| {
            pool.breaker().trip();
            pool.breaker().probe();
        });
        join(callers);
        tripped.join().unwrap();
        pool.breaker().reset();
        visitor(&pool).join().unwrap();

        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn pools_that_share_a_breaker_agree_whoever_changes_it() {
    explore(|| {
        // A strategy that changes nothing by itself.
        let breaker = SharedBreaker::new(Indifferent);
        let (one, _) = pool(|builder| builder.max_size(1).shared_breaker(&breaker));
        let (other, backend) = pool(|builder| builder.max_size(1).shared_breaker(&breaker));

        let threads = [
            thread_with(&one, |pool| pool.breaker().trip()),
            thread_with(&other, |pool| pool.breaker().probe()),
            thread_with(&other, |pool| pool.breaker().reset()),
        ];
        let waiting = caller(&other);
        join(threads);
        let states = [one.breaker().state(), other.breaker().state()];
        breaker.reset();
        assert_served_or_told(waiting.join().unwrap());

        assert_eq!(states[0], states[1]);
        assert_at_rest(&other, &backend, 1);
    });
}
