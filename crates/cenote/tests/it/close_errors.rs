//! A close that fails is told: to observers, to a counter, and at the end of a drain.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, Rig};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_error_of_a_close_reaches_the_observers_and_a_counter() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Close, Gate::Fail);

    Lease::discard(rig.acquire().await);
    settle().await;

    assert_eq!(rig.pool.status().close_failed, 1);
    let told = rig.recorder.of("callback_failed");
    assert!(told.len() == 1 && told[0].contains("Close"), "{told:?}");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_that_hangs_or_panics_counts_too() {
    for gate in [Gate::Hang, Gate::Panic] {
        let rig = Rig::new(|pool| pool.max_size(1).close_timeout(SECOND));
        rig.backend.once(Call::Close, gate);

        Lease::release(rig.acquire().await).await;
        rig.pool.invalidate();
        tokio::time::sleep(2 * SECOND).await;

        assert_eq!(rig.pool.status().close_failed, 1, "{gate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_good_close_does_not_count() {
    let rig = Rig::with_max_size(1);

    Lease::discard(rig.acquire().await);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.close_failed, status.closes.total()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_drain_tells_how_many_closes_have_failed() {
    let rig = Rig::with_max_size(3);
    rig.backend.once(Call::Close, Gate::Fail);
    Lease::discard(rig.acquire().await);
    settle().await;
    rig.leave_idle(3).await;
    rig.backend.once(Call::Close, Gate::Fail);

    let left = rig.pool.close_within(SECOND).await;

    assert_eq!(
        (left.is_empty(), left.close_failed),
        (true, 1),
        "not the one before"
    );
    assert_eq!(left.to_string(), "nothing left; 1 failed to close");
}
