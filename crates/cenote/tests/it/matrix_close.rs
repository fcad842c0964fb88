//! The close of a pool whose resources are idle, leased, being opened and waited for, crossed with
//! every way in which every callback can fail, and dropped at some point: every waiter is told,
//! nothing is lent, and in the end nothing is left alive.

use std::time::Duration;

use cenote::{AcquireError, CloseReason, Lease};
use cenote_testkit::{Call, Gate, GatedPool, Rig};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::matrix::{Case, Cut, LONG, assert_fit, breathe, fill, for_every_case};

/// The limit for `Closed`, which is returned at once: timers are exact to a millisecond.
const AT_ONCE: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug)]
enum Moment {
    /// All resources are idle.
    Idle,
    /// All resources are leased, some of them dirty.
    Out,
    /// All resources are being opened.
    Opening,
    /// A stale resource is being checked for a caller.
    Checking,
    /// Returned resources are being cleaned.
    Cleaning,
}

/// A waiter that is told `Closed` as soon as the pool closes, or was served before.
fn waiter(pool: &GatedPool) -> JoinHandle<()> {
    let pool = pool.clone();
    tokio::spawn(async move {
        match pool.acquire_within(None).await {
            Ok(lease) => assert_fit(&lease),
            Err(AcquireError::Closed { .. }) => assert!(pool.is_closed()),
            Err(AcquireError::Open { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    })
}

async fn close_at(moment: Moment, case: Case) {
    let rig = case.rig(|pool| pool);
    let mut leases = Vec::new();
    let mut crowd = Vec::new();
    match moment {
        Moment::Idle => fill(&rig).await,
        Moment::Out | Moment::Cleaning => {
            for nth in 0..case.max_size {
                let mut lease = rig.acquire().await;
                lease.dirty = nth % 2 == 0;
                leases.push(lease);
            }
        }
        Moment::Checking => {
            fill(&rig).await;
            sleep(Duration::from_secs(6)).await;
        }
        Moment::Opening => {}
    }
    case.arm(&rig);
    match moment {
        Moment::Opening | Moment::Checking => crowd.push(waiter(&rig.pool)),
        Moment::Cleaning => leases.clear(),
        Moment::Idle | Moment::Out => {}
    }
    if case.crowd {
        crowd.extend([waiter(&rig.pool), waiter(&rig.pool)]);
    }
    tokio::task::yield_now().await;

    let closed = case.cut.apply(rig.pool.close_within(LONG)).await;
    assert_eq!(rig.pool.is_closed(), case.cut != Cut::Polls(0));
    rig.pool.close();

    assert_crowd_is_told(crowd).await;
    if let Some(left) = closed {
        assert_eq!(
            left.leases.len(),
            leases.len(),
            "it names the leases that are still out"
        );
    }
    assert_stays_closed(&rig, leases).await;
}

async fn assert_crowd_is_told(crowd: Vec<JoinHandle<()>>) {
    for one in crowd {
        let told = timeout(AT_ONCE, one).await.expect("a waiter was not told");
        told.expect("a waiter was told something else");
    }
}

async fn assert_stays_closed(rig: &Rig, leases: Vec<Lease<cenote_testkit::GatedManager>>) {
    let (out, opened) = (leases.len(), rig.backend.calls(Call::Open));
    let refused = rig.pool.acquire().await;
    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
    let refused = rig.pool.try_acquire();
    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
    assert_eq!(rig.pool.leases().len(), out, "leases go on");

    drop(leases);
    sleep(LONG).await;

    let status = rig.pool.status();
    assert_eq!(
        (status.total, status.closing, status.waiting),
        (0, 0, 0),
        "{status:#?}"
    );
    assert_eq!(rig.backend.alive(), 0, "something was left alive");
    assert_eq!(status.opened, status.closes.total(), "closed exactly once");
    assert_eq!(rig.backend.calls(Call::Open), opened, "opened after close");
    assert_eq!(rig.recorder.of("pool_closed").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_close_while_everything_is_idle_leaves_nothing_alive_whatever_fails() {
    for_every_case(|case| close_at(Moment::Idle, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_while_everything_is_out_leaves_nothing_alive_whatever_fails() {
    for_every_case(|case| close_at(Moment::Out, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_during_an_open_leaves_nothing_alive_whatever_fails() {
    for_every_case(|case| close_at(Moment::Opening, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_during_a_check_leaves_nothing_alive_whatever_fails() {
    for_every_case(|case| close_at(Moment::Checking, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_during_a_clean_leaves_nothing_alive_whatever_fails() {
    for_every_case(|case| close_at(Moment::Cleaning, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_that_is_cut_at_its_first_poll_has_closed_the_pool_and_everything_idle() {
    let rig = Rig::with_max_size(3);
    fill(&rig).await;
    rig.backend.always(Call::Close, Gate::Hang);

    Cut::Polls(1).apply(rig.pool.close_within(LONG)).await;
    breathe().await;

    assert_eq!((rig.pool.status().closing, rig.backend.alive()), (3, 3));
    sleep(Duration::from_secs(6)).await;
    assert_eq!((rig.pool.status().closing, rig.backend.alive()), (0, 0));
    assert_eq!(rig.pool.status().closes.by(CloseReason::PoolClosed), 3);
}
