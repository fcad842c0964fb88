//! A runtime that shuts down while others go on: the work of its tasks is given back, and no caller
//! waits for ever.

use cenote::{Lease, shut_down};
use shuttle::thread;

use crate::explore;
use crate::world::{acquire, assert_at_rest, blocked, join, outside, pool_of, visitor};

#[test]
fn an_open_that_ends_with_its_runtime_is_begun_again_for_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let waiting = visitor(&pool);
        let end = thread::spawn(shut_down);

        waiting.join().unwrap();
        end.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_lease_that_is_dropped_while_the_upkeep_task_ends_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        let release = outside(move || drop(held));
        let end = thread::spawn(shut_down);

        waiting.join().unwrap();
        release.join().unwrap();
        end.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn a_lease_that_is_discarded_while_the_upkeep_task_ends_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        let discard = outside(move || Lease::discard(held));
        let end = thread::spawn(shut_down);

        assert_eq!(waiting.join().unwrap(), 2);
        discard.join().unwrap();
        end.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn the_waiter_is_served_although_a_cleaning_ends_with_its_runtime() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let mut held = acquire(&pool);
        held.dirty = true;

        let waiting = visitor(&pool);
        drop(held);
        let end = thread::spawn(shut_down);

        waiting.join().unwrap();
        end.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn runtimes_may_end_one_after_another() {
    explore(|| {
        let (pool, backend) = pool_of(2);

        let visitors = [(); 3].map(|()| visitor(&pool));
        let ends = [(); 2].map(|()| thread::spawn(shut_down));

        join(visitors);
        join(ends);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_blocked_thread_outlives_the_runtime_that_served_it() {
    explore(|| {
        let (pool, backend) = pool_of(1);

        let blocked = blocked(&pool);
        let end = thread::spawn(shut_down);

        blocked.join().unwrap();
        end.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}
