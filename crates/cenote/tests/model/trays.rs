//! Trips by a tray against calls to the ledger: no waiter is forgotten, no resource is lent twice,
//! and no count is lost.

use crate::explore;
use crate::world::{
    Backend, ByHand, Leased, Pooled, acquire, assert_at_rest, join, outside, pool, pool_of,
    thread_with, visitor,
};

/// A lease whose slot is on a tray.
fn acquire_on_tray(pool: &Pooled) -> Leased {
    drop(acquire(pool));
    acquire(pool)
}

/// Leaves one resource on a tray.
fn leave_on_tray(pool: &Pooled) {
    drop(acquire_on_tray(pool));
}

/// The pool ends. Each resource that was opened is closed once.
fn end(pool: Pooled, backend: &Backend, opened: usize) {
    drop(pool);
    assert_eq!(backend.wait_until_empty(), opened, "each is closed once");
}

#[test]
fn a_return_against_a_caller_that_begins_to_wait_serves_it() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire_on_tray(&pool);

        let waiting = visitor(&pool);
        outside(move || drop(held)).join().unwrap();

        assert_eq!(waiting.join().unwrap(), 1);
        assert_at_rest(&pool, &backend, 1);
        end(pool, &backend, 1);
    });
}

#[test]
fn three_callers_are_served_by_one_tray() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        leave_on_tray(&pool);

        let visitors = [(); 3].map(|()| visitor(&pool));

        assert_eq!(join(visitors), [1; 3]);
        assert_eq!(pool.status().acquired, 5);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn four_callers_are_served_by_two_trays() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire_on_tray(&pool), acquire(&pool)];
        drop(held);

        let threads = [(); 4].map(|()| {
            thread_with(&pool, |pool| {
                drop(acquire(pool));
                drop(acquire(pool));
            })
        });
        join(threads);

        let status = pool.status();
        assert_eq!((status.acquired, status.released), (11, 11));
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_waiter_comes_before_a_newcomer_when_a_tray_is_used() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire_on_tray(&pool);
        let mut waiting = ByHand::join(&pool);

        let newcomer = visitor(&pool);
        let release = outside(move || drop(held));
        release.join().unwrap();

        assert!(waiting.is_woken(), "served, and not woken");
        let served = waiting.poll();
        assert!(served.is_ready(), "a newcomer passed the waiter");
        drop(served);
        drop(waiting);
        newcomer.join().unwrap();
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn the_numbers_of_every_status_agree_while_trays_are_used() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        leave_on_tray(&pool);

        let busy = [(); 2].map(|()| visitor(&pool));
        let (first, second) = (pool.status(), pool.status());
        join(busy);

        for status in [&first, &second] {
            assert_eq!(
                status.total,
                status.idle + status.in_use + status.opening + status.cleaning + status.checking
            );
            assert!(status.acquired >= status.released);
        }
        assert!(first.acquired <= second.acquired && first.released <= second.released);
        let last = pool.status();
        assert_eq!((last.acquired, last.released), (4, 4));
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_close_against_trips_closes_every_resource() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire_on_tray(&pool);

        let release = outside(move || drop(held));
        let closer = thread_with(&pool, Pooled::close);
        let taken = pool.try_acquire();
        release.join().unwrap();
        closer.join().unwrap();
        drop(taken);

        assert!(pool.try_acquire().is_err(), "lent after it was closed");
        end(pool, &backend, 1);
    });
}

#[test]
fn a_pool_that_shrinks_against_returns_keeps_to_its_new_size() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire_on_tray(&pool), acquire(&pool)];

        let releases = held.map(|lease| outside(move || drop(lease)));
        pool.resize(1).unwrap();
        join(releases);

        assert_eq!(pool.status().total, 1);
        drop(acquire(&pool));
        end(pool, &backend, 2);
    });
}

#[test]
fn an_invalidated_resource_is_not_lent_again() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire_on_tray(&pool);

        let release = outside(move || drop(held));
        pool.invalidate();
        let next = acquire(&pool).serial;
        release.join().unwrap();

        assert_eq!(next, 2, "lent after it was invalidated");
        assert_at_rest(&pool, &backend, 1);
        end(pool, &backend, 2);
    });
}

#[test]
fn a_label_is_not_lost_between_tray_and_ledger() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire_on_tray(&pool);

        let looks = thread_with(&pool, |pool| drop(pool.leases()));
        Leased::label(&held, "mine");
        looks.join().unwrap();

        assert_eq!(pool.leases()[0].label.as_deref(), Some("mine"));
        drop(held);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn the_last_handle_against_the_last_lease_closes_the_resource() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire_on_tray(&pool);

        let release = outside(move || drop(held));
        drop(pool);
        release.join().unwrap();

        backend.wait_until_empty();
    });
}

#[test]
fn a_resource_is_closed_after_its_last_use_on_a_tray() {
    explore(|| {
        let (pool, backend) = pool(|builder| builder.max_size(1).max_uses(3));
        drop(acquire(&pool));

        let visitors = [(); 3].map(|()| visitor(&pool));

        let mut serials = join(visitors);
        serials.sort_unstable();
        assert_eq!(serials, [1, 1, 2]);
        assert_at_rest(&pool, &backend, 1);
    });
}
