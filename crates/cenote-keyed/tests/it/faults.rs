//! Every callback passes, fails, is slow, hangs or panics, and no place is ever lost.

use std::time::Duration;

use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate};
use tokio::time::timeout;

use crate::SECOND;
use crate::rig::Rig;

const GATES: [Gate; 5] = [
    Gate::Pass,
    Gate::Fail,
    Gate::Slow(SECOND),
    Gate::Hang,
    Gate::Panic,
];

const CALLS: [Call; 6] = [
    Call::Open,
    Call::Check,
    Call::IsBroken,
    Call::NeedsCleaning,
    Call::Clean,
    Call::Close,
];

fn rig() -> Rig {
    Rig::with(|pools| {
        let pools = pools.total(3).max_size(2).open_timeout(SECOND * 3);
        let pools = pools
            .check_after_idle(Duration::ZERO)
            .acquire_timeout(SECOND * 20);
        pools.close_timeout(SECOND * 3)
    })
}

#[tokio::test(start_paused = true)]
async fn whatever_a_callback_of_one_key_does_the_others_get_their_places() {
    for call in CALLS {
        for gate in GATES {
            let rig = rig();
            rig.backend(1).always(call, gate);
            for _ in 0..3 {
                if let Ok(mut lease) = rig.pools.acquire(&1).await {
                    lease.dirty = true;
                }
                let other = rig.pools.acquire(&2).await;
                assert!(other.is_ok(), "{call:?} {gate:?}: {other:?}");
            }
            advance(SECOND * 30).await;
            assert!(rig.alive() <= 3, "{call:?} {gate:?}");
            rig.assert_full_service().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_dropped_at_any_moment_loses_no_place() {
    for call in CALLS {
        for gate in GATES {
            for patience in [0, 1, 4, 6, 210, 999, 1001, 2500] {
                let rig = rig();
                let held = rig.hold(2, 2).await;
                drop(rig.acquire(1).await);
                rig.backend(1).always(call, gate);
                rig.backend(2).always(call, gate);
                let patience = Duration::from_millis(patience);
                let all = async {
                    let _both = tokio::join!(rig.pools.acquire(&1), rig.pools.acquire(&3));
                    rig.pools.acquire(&4).await
                };
                let gave_up = timeout(patience, all).await;
                drop((gave_up, held));
                settle().await;
                rig.assert_full_service().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_open_of_one_key_holds_its_place_for_no_longer_than_its_limit() {
    let rig = Rig::with(|pools| pools.total(1).max_size(1).open_timeout(SECOND * 2));
    rig.backend(1).always(Call::Open, Gate::Hang);
    let _hangs = rig.wait(1);
    settle().await;

    let mut waiting = rig.wait(2);
    advance(SECOND).await;
    assert!(!waiting.is_served());
    advance(SECOND * 2).await;

    assert!(waiting.is_served());
}
