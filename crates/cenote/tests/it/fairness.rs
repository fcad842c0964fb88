//! First come, first served.

use cenote::Lease;
use cenote_testkit::Rig;

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_passes_its_turn_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());

    drop(first);
    drop(held);

    assert_eq!(Lease::id(&second.await.unwrap()), 1);
}
