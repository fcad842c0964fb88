//! Leases through a tray on several runtimes, one of which ends.

use std::time::Duration;

use cenote_testkit::clock::{eventually, settle};
use cenote_testkit::{Call, Rig};
use tokio::runtime::Runtime;

use crate::support::runtimes::{single, threaded};

const MS: Duration = Duration::from_millis(1);

/// Starts the upkeep task there. A pool that is suspended opens nothing meanwhile.
fn start_upkeep(rig: &Rig, runtime: &Runtime) {
    rig.pool.suspend();
    let tried = runtime.block_on(async { rig.pool.try_acquire() });
    assert!(matches!(tried, Ok(None)));
    rig.pool.resume();
}

#[test]
fn a_resource_on_a_tray_is_checked_too_once_its_runtime_is_gone() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(None));
    let (first, second) = (single(), single());
    // The upkeep runs on the runtime that goes on.
    start_upkeep(&rig, &second);
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
fn the_upkeep_goes_on_though_no_caller_waits() {
    let rig = Rig::new(|pool| pool.max_size(1).idle_timeout(20 * MS));
    let (first, second) = (single(), threaded());
    start_upkeep(&rig, &first);
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
