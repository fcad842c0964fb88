//! Status: one consistent snapshot in every phase, and every end is counted by its kind.

use std::time::Duration;

use cenote::{CloseReason, Lease, Status};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, counters, cut};

use crate::support::hooks::before_release;
use crate::support::rigs::hold;
use crate::support::status_rules::checked_status;

const SECOND: Duration = Duration::from_secs(1);

/// Returns idle, in use, opening, cleaning, checking and closing.
fn phases(status: &Status) -> [usize; 6] {
    let Status {
        idle,
        in_use,
        opening,
        cleaning,
        checking,
        closing,
        ..
    } = *status;
    [idle, in_use, opening, cleaning, checking, closing]
}

#[test]
fn a_new_pool_has_nothing_and_has_done_nothing() {
    let rig = Rig::with_max_size(7);

    let status = checked_status(&rig.pool);

    assert_eq!(status.max_size, 7);
    assert_eq!(phases(&status), [0; 6]);
    assert_eq!((status.total, status.waiting), (0, 0));
    assert_eq!(status.oldest_wait, None);
    assert!(counters(&status).iter().all(|count| *count == 0));
}

#[tokio::test(start_paused = true)]
async fn every_snapshot_is_consistent_from_opening_to_closing() {
    let rig = Rig::with_max_size(3);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    rig.backend.always(Call::Check, Gate::Slow(SECOND));
    rig.backend.always(Call::Clean, Gate::Slow(SECOND));
    rig.backend.always(Call::Close, Gate::Slow(SECOND));

    let waiting = rig.wait();
    settle().await;
    assert_eq!(
        phases(&checked_status(&rig.pool)),
        [0, 0, 1, 0, 0, 0],
        "opening"
    );
    advance(SECOND).await;
    assert_eq!(
        phases(&checked_status(&rig.pool)),
        [0, 1, 0, 0, 0, 0],
        "granted"
    );
    let mut lease = waiting.await.unwrap();
    assert_eq!(
        phases(&checked_status(&rig.pool)),
        [0, 1, 0, 0, 0, 0],
        "lent"
    );
    lease.dirty = true;
    drop(lease);
    assert_eq!(
        phases(&checked_status(&rig.pool)),
        [0, 0, 0, 1, 0, 0],
        "cleaning"
    );
    advance(SECOND).await;
    assert_eq!(
        phases(&checked_status(&rig.pool)),
        [1, 0, 0, 0, 0, 0],
        "idle"
    );
    advance(10 * SECOND).await;
    let waiting = rig.wait();
    settle().await;
    assert_eq!(
        phases(&checked_status(&rig.pool)),
        [0, 0, 0, 0, 1, 0],
        "checking"
    );
    advance(SECOND / 2).await;
    advance(SECOND / 2).await;
    Lease::discard(waiting.await.unwrap());

    let closing = checked_status(&rig.pool);
    advance(SECOND).await;
    let gone = checked_status(&rig.pool);

    assert_eq!(closing.closing, 1);
    assert_eq!(gone.closing, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn all_phases_at_once_add_up() {
    let rig = Rig::with_max_size(6);
    let mut leases = hold(&rig, 5).await;
    rig.backend.always(Call::Open, Gate::Hang);
    rig.backend.always(Call::Check, Gate::Hang);
    rig.backend.always(Call::Clean, Gate::Hang);
    rig.backend.always(Call::Close, Gate::Hang);
    drop(leases.pop());
    advance(5 * SECOND).await;
    assert!(rig.pool.try_acquire().unwrap().is_none(), "it is checked");
    drop(leases.pop());
    Lease::discard(leases.pop().unwrap());
    leases.last_mut().unwrap().dirty = true;
    drop(leases.pop());
    rig.pool.suspend();
    let _waiting = rig.wait();

    let suspended = checked_status(&rig.pool);
    rig.pool.resume();
    let resumed = checked_status(&rig.pool);

    assert_eq!(phases(&suspended), [1, 1, 0, 1, 1, 1]);
    assert_eq!((suspended.total, suspended.waiting), (4, 1));
    assert_eq!(
        phases(&resumed),
        [0, 2, 0, 1, 1, 1],
        "the idle one is granted"
    );
}

#[tokio::test(start_paused = true)]
async fn wait_time_and_oldest_wait_are_measured() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let opening = rig.pool.status();
    let first = rig.wait();
    advance(2 * SECOND).await;
    let second = rig.wait();
    advance(SECOND).await;

    let both = checked_status(&rig.pool);
    drop(first);
    let one = checked_status(&rig.pool);
    advance(SECOND).await;
    drop(held);
    drop(second.await.unwrap());
    let none = checked_status(&rig.pool);

    assert_eq!((both.waiting, both.oldest_wait), (2, Some(3 * SECOND)));
    assert_eq!((one.waiting, one.oldest_wait), (1, Some(SECOND)));
    assert_eq!((none.waiting, none.oldest_wait), (0, None));
    assert_eq!(none.waited - opening.waited, 2);
    assert_eq!(none.wait_time - opening.wait_time, (3 + 2) * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_served_at_once_has_not_waited() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let before = rig.pool.status().waited;

    drop(rig.acquire().await);
    drop(rig.pool.try_acquire().unwrap());

    let status = checked_status(&rig.pool);
    assert_eq!(
        (before, status.waited),
        (1, 1),
        "only the open was waited for"
    );
    assert_eq!((status.acquired, status.released), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn every_end_of_an_acquire_and_of_a_lease_is_counted() {
    let rig = Rig::new(|pool| pool.max_size(2).leak_after(30 * SECOND));
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    let held = [rig.acquire().await, rig.acquire().await];

    assert!(rig.pool.acquire_within(SECOND).await.is_err());
    assert!(cut(1, rig.pool.acquire()).await.is_none());
    drop(rig.wait());
    assert!(rig.pool.try_acquire().unwrap().is_none());
    tokio::time::sleep(30 * SECOND).await;
    let [first, second] = held;
    Lease::discard(first);
    drop(Lease::detach(second));
    drop(rig.acquire().await);
    settle().await;

    let status = checked_status(&rig.pool);
    assert_eq!((status.acquired, status.released), (3, 2));
    assert_eq!((status.discarded, status.detached), (1, 1));
    assert_eq!((status.opened, status.open_failed), (3, 1));
    assert_eq!((status.timed_out, status.cancelled), (1, 2));
    assert_eq!(status.leaked, 2);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_closed_is_counted_by_its_reason_once() {
    let rig = Rig::new(|pool| {
        pool.max_size(3)
            .max_uses(3)
            .idle_timeout(600 * SECOND)
            .max_lifetime(3600 * SECOND)
            .lifetime_jitter(0.0)
            .before_release(before_release)
    });
    let Rig { pool, backend, .. } = &rig;

    for _ in 0..3 {
        Lease::release(rig.acquire().await).await;
    }
    rig.acquire().await.broken = true;
    Lease::discard(rig.acquire().await);
    backend.once(Call::Clean, Gate::Fail);
    rig.acquire().await.dirty = true;
    settle().await;
    backend.once(Call::BeforeRelease, Gate::Fail);
    Lease::release(rig.acquire().await).await;
    Lease::release(rig.acquire().await).await;
    advance(10 * SECOND).await;
    backend.once(Call::Check, Gate::Fail);
    let invalidated = rig.acquire().await;
    pool.invalidate();
    Lease::release(invalidated).await;
    let two = [rig.acquire().await, rig.acquire().await];
    drop(two);
    settle().await;
    pool.resize(1).unwrap();
    tokio::time::sleep(601 * SECOND).await;
    let expired = rig.acquire().await;
    tokio::time::sleep(3601 * SECOND).await;
    Lease::release(expired).await;
    drop(rig.acquire().await);
    settle().await;
    pool.close();
    settle().await;

    let status = checked_status(pool);
    let counts: Vec<_> = status.closes.iter().collect();
    let once_each: Vec<_> = CloseReason::ALL
        .into_iter()
        .map(|reason| (reason, 1))
        .collect();
    assert_eq!(counts, once_each);
    assert_eq!(status.closes.total(), 11);
    assert_eq!((status.opened, status.total), (11, 0));
    assert_eq!(backend.alive(), 0);
    assert_eq!(rig.recorder.of("closed").len(), 11, "an event for each");
}

#[test]
fn reasons_have_the_names_of_the_metrics() {
    let names = CloseReason::ALL.map(|reason| reason.to_string());

    assert_eq!(
        names,
        [
            "idle",
            "lifetime",
            "uses",
            "broken",
            "discarded",
            "failed_check",
            "failed_clean",
            "refused",
            "invalidated",
            "shrunk",
            "pool_closed"
        ]
    );
    assert_eq!(
        CloseReason::ALL.map(CloseReason::name),
        names.each_ref().map(|name| &**name)
    );
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_not_taken_yet_is_in_use_and_its_holder_is_the_waiter() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();

    drop(held);

    assert_eq!(rig.pool.status().in_use, 1);
    let [holder] = &rig.pool.leases()[..] else {
        panic!("the waiter holds it");
    };
    assert!(!holder.claimed);
    let text = holder.to_string();
    assert!(text.starts_with("resource 1 granted to "), "{text}");
    assert!(text.ends_with(", not taken yet"), "{text}");
    drop(waiting);
}
