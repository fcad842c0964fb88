//! Acquire on any executor: no tokio runtime is needed, not even to wait or to time out.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use cenote::{AcquireError, Lease};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::runtimes::real_now;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A minimal executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_foreign_executor_can_open_return_and_reuse() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Slow(5 * MS));

    drop(block_on(rig.pool.acquire()).unwrap());
    let again = block_on(rig.pool.acquire()).unwrap();

    assert_eq!((Lease::id(&again), Lease::uses(&again)), (1, 2));
}

#[test]
fn a_foreign_executor_can_wait_until_its_time_is_over() {
    let rig = Rig::with_max_size(1);
    let held = block_on(rig.pool.acquire()).unwrap();
    let started = real_now();

    let told = block_on(rig.pool.acquire_within(30 * MS));

    assert!(matches!(told, Err(AcquireError::TimedOut(_))));
    let took = real_now() - started;
    assert!(took >= 30 * MS && took < SECOND, "{took:?}");
    drop(held);
    assert!(block_on(rig.pool.acquire()).is_ok());
}

#[test]
fn a_foreign_executor_is_woken_by_a_return() {
    let rig = Rig::with_max_size(1);
    let held = block_on(rig.pool.acquire()).unwrap();
    let pool = rig.pool.clone();
    let waiting = thread::spawn(move || block_on(pool.acquire()).map(|lease| Lease::uses(&lease)));
    while rig.pool.status().waiting == 0 {
        thread::yield_now();
    }

    drop(held);

    assert_eq!(waiting.join().unwrap().unwrap(), 2);
}

#[test]
fn a_foreign_executor_is_told_of_a_failed_open() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);

    let told = block_on(rig.pool.acquire());

    assert!(matches!(told, Err(AcquireError::Open { .. })));
    assert!(block_on(rig.pool.acquire()).is_ok());
}

#[test]
fn a_foreign_executor_has_room_freed_by_a_discard() {
    let rig = Rig::with_max_size(1);
    let held = block_on(rig.pool.acquire()).unwrap();
    let pool = rig.pool.clone();
    let waiting = thread::spawn(move || block_on(pool.acquire()).map(|lease| lease.serial));
    while rig.pool.status().waiting == 0 {
        thread::yield_now();
    }

    Lease::discard(held);

    assert_eq!(waiting.join().unwrap().unwrap(), 2);
}

#[test]
fn a_waiter_of_a_foreign_executor_that_is_dropped_passes_its_turn_on() {
    let rig = Rig::with_max_size(1);
    let held = block_on(rig.pool.acquire()).unwrap();
    let (first, second) = (rig.wait(), rig.wait());

    drop(held);
    drop(first);

    assert_eq!(Lease::id(&block_on(second).unwrap()), 1);
}

#[test]
fn a_foreign_executor_has_its_resource_checked_cleaned_and_lent_by_with() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(Duration::ZERO));
    let mut lease = block_on(rig.pool.acquire()).unwrap();
    lease.dirty = true;
    drop(lease);

    let dirty = block_on(rig.pool.with(async |thing| thing.dirty));

    assert!(!dirty.unwrap());
    assert_eq!(rig.backend.calls(Call::Clean), 1);
    let lease = block_on(rig.pool.acquire()).unwrap();
    assert!(rig.backend.calls(Call::Check) >= 1);
    block_on(Lease::release(lease));
    assert_eq!(rig.pool.status().idle, 1);
}

#[test]
fn try_acquire_needs_no_runtime() {
    let rig = Rig::with_max_size(1);

    assert!(rig.pool.try_acquire().unwrap().is_none());
    drop(block_on(rig.pool.acquire()).unwrap());

    assert!(rig.pool.try_acquire().unwrap().is_some());
}
