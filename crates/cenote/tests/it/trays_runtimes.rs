//! Trips by a tray on several runtimes, one of which ends.

use std::time::Duration;

use cenote_testkit::clock::{eventually, settle};
use cenote_testkit::{Call, Rig};
use tokio::runtime::{Builder, Runtime};

const MS: Duration = Duration::from_millis(1);

fn single() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("a runtime can be started")
}

/// One that runs also while nobody waits for it.
fn threaded() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(1).enable_all().build();
    built.expect("a runtime can be started")
}

#[test]
fn what_lies_on_a_tray_is_checked_too_once_its_runtime_is_gone() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(None));
    let (first, second) = (single(), single());
    // The upkeep is on the one that goes on.
    second.block_on(async { assert!(rig.pool.try_acquire().unwrap().is_none()) });
    drop(first.block_on(rig.acquire()));
    second.block_on(settle());
    second.block_on(async {
        for _ in 0..3 {
            drop(rig.acquire().await);
        }
    });
    assert_eq!(rig.backend.calls(Call::Check), 0);

    drop(first);
    drop(second.block_on(rig.acquire()));

    assert_eq!(rig.backend.calls(Call::Check), 1);
}

#[test]
fn the_upkeep_goes_on_though_nobody_has_to_wait() {
    let rig = Rig::new(|pool| pool.max_size(1).idle_timeout(20 * MS));
    let (first, second) = (single(), threaded());
    first.block_on(async { assert!(rig.pool.try_acquire().unwrap().is_none()) });
    let trips = async || {
        for _ in 0..3 {
            drop(rig.acquire().await);
        }
    };
    second.block_on(trips());

    drop(first);
    second.block_on(trips());

    eventually("it is evicted", || rig.backend.alive() == 0);
}
