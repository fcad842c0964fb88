//! Detach and discard against waiting: the next waiter is served by a resource in the free slot.

use cenote::Lease;

use crate::explore;
use crate::world::{acquire, assert_at_rest, blocked, join, outside, pool_of, visitor};

#[test]
fn the_slot_of_a_discarded_resource_serves_the_waiter() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        outside(move || Lease::discard(held)).join().unwrap();

        assert_eq!(waiting.join().unwrap(), 2);
        assert_at_rest(&pool, &backend, 1);
    });
}

#[test]
fn the_slot_of_a_detached_resource_serves_the_waiter() {
    explore(|| {
        let (pool, _) = pool_of(1);
        let held = acquire(&pool);

        let waiting = visitor(&pool);
        let detached = outside(move || Lease::detach(held)).join().unwrap();

        assert_eq!(waiting.join().unwrap(), 2);
        assert_eq!(detached.serial, 1);
    });
}

#[test]
fn two_discards_serve_three_waiters() {
    explore(|| {
        let (pool, backend) = pool_of(2);
        let held = [acquire(&pool), acquire(&pool)];

        let waiting = [(); 3].map(|()| visitor(&pool));
        let discards = held.map(|lease| outside(move || Lease::discard(lease)));

        assert!(join(waiting).into_iter().all(|serial| serial > 2));
        join(discards);
        assert_at_rest(&pool, &backend, 2);
    });
}

#[test]
fn a_discard_serves_a_blocked_thread() {
    explore(|| {
        let (pool, backend) = pool_of(1);
        let held = acquire(&pool);

        let blocked = blocked(&pool);
        outside(move || Lease::discard(held)).join().unwrap();

        assert_eq!(blocked.join().unwrap(), 2);
        assert_at_rest(&pool, &backend, 1);
    });
}
