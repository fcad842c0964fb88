//! A recovering breaker: as many probes as allowed and never more, and the outcome of the waiters.

use std::time::Duration;

use cenote::{AcquireError, Lease};
use cenote_testkit::clock::advance;
use cenote_testkit::{GatedManager, Rig};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn recovering_lends_as_many_probes_as_allowed_and_never_more() {
    let rig = Rig::new(|pool| pool.max_size(5).probes(2));
    rig.pool.breaker().probe();
    let mut probes = vec![rig.acquire().await, rig.acquire().await];
    let mut waiting: Vec<_> = (0..3).map(|_| rig.wait()).collect();

    advance(3 * SECOND).await;
    assert!(rig.pool.try_acquire().unwrap().is_none());
    assert!(!waiting.iter_mut().any(|waiting| waiting.is_served()));
    assert_eq!(rig.pool.status().in_use, 2);
    assert_eq!(rig.backend.peak(), 2, "nothing is opened beyond the probes");

    for first in waiting {
        drop(probes.remove(0));
        assert_eq!(rig.pool.status().in_use, 2, "one back, one out");
        probes.push(first.await.unwrap());
    }
    drop(probes);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn recovering_lends_no_more_probes_than_allowed_whatever_is_idle() {
    let rig = Rig::new(|pool| pool.max_size(5).probes(1).self_probe(false));
    let warm: Vec<_> = [(); 3].map(|()| rig.acquire()).into_iter().collect();
    let mut leases = Vec::new();
    for lease in warm {
        leases.push(lease.await);
    }
    drop(leases);
    rig.pool.breaker().probe();

    let probe = rig.pool.try_acquire().unwrap();
    let more = rig.pool.try_acquire().unwrap();

    assert!(probe.is_some());
    assert!(more.is_none());
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_ends_in_any_way_makes_room_for_the_next() {
    let ends: [fn(Lease<_>); 4] = [
        drop,
        Lease::discard,
        |lease| drop(Lease::detach(lease)),
        |mut lease: Lease<GatedManager>| lease.broken = true,
    ];
    let rig = Rig::with_max_size(5);
    rig.pool.breaker().probe();

    for end in ends {
        let probe = rig.acquire().await;
        let waiting = rig.wait();

        end(probe);

        drop(waiting.await.unwrap());
    }
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_cancelled_before_it_is_taken_makes_room_for_the_next() {
    let rig = Rig::with_max_size(2);
    rig.pool.breaker().probe();
    let probe = rig.acquire().await;
    let (first, mut second) = (rig.wait(), rig.wait());
    drop(probe);

    drop(first);

    assert!(second.is_served());
    assert_eq!(rig.pool.status().in_use, 1);
}

#[tokio::test(start_paused = true)]
async fn becoming_active_serves_all_waiters() {
    let rig = Rig::with_max_size(4);
    rig.pool.breaker().probe();
    let probe = rig.acquire().await;
    let waiting: Vec<_> = (0..3).map(|_| rig.wait()).collect();

    rig.pool.breaker().reset();

    let mut leases = vec![probe];
    for waiting in waiting {
        leases.push(waiting.await.unwrap());
    }
    assert_eq!(rig.pool.status().in_use, 4);
}

#[tokio::test(start_paused = true)]
async fn waiters_for_a_probe_are_told_when_the_breaker_becomes_inactive_again() {
    let rig = Rig::with_max_size(2);
    rig.pool.breaker().probe();
    let probe = rig.acquire().await;
    let waiting = rig.wait();

    rig.pool.breaker().trip();

    assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
    drop(probe);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn leases_from_before_are_no_probes() {
    let rig = Rig::with_max_size(4);
    let before = [rig.acquire().await, rig.acquire().await];
    rig.pool.breaker().probe();

    let probe = rig.acquire().await;
    let mut waiting = rig.wait();
    drop(before);

    assert!(!waiting.is_served(), "the probe is still out");
    drop(probe);
    assert!(waiting.is_served());
}

#[tokio::test(start_paused = true)]
async fn probes_that_are_opened_at_once_are_no_more_than_allowed() {
    let rig = Rig::new(|pool| pool.max_size(8).max_opening(8).probes(3));
    rig.pool.breaker().probe();
    let tasks = [(); 8].map(|()| {
        let pool = rig.pool.clone();
        tokio::spawn(async move {
            let lease = pool.acquire_within(None).await.unwrap();
            tokio::time::sleep(SECOND).await;
            drop(lease);
        })
    });

    while tasks.iter().any(|task| !task.is_finished()) {
        advance(SECOND / 10).await;
        assert!(rig.pool.status().in_use <= 3);
    }

    assert_eq!(rig.pool.status().released, 8);
    assert!(rig.backend.peak() <= 3);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_resumes_while_it_recovers_lends_no_more_probes_than_allowed() {
    let rig = Rig::new(|pool| pool.max_size(3).probes(1).self_probe(false));
    rig.leave_idle(3).await;
    rig.pool.suspend();
    rig.pool.breaker().probe();
    let mut waiting = [rig.wait(), rig.wait(), rig.wait()];

    rig.pool.resume();

    let served = waiting.each_mut().map(|waiting| waiting.is_served());
    assert_eq!(served, [true, false, false]);
    assert_eq!(rig.pool.status().in_use, 1);
}

/// A release also cleans the probe it returns if the return serves another waiter.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_released_dirty_is_cleaned_though_the_next_is_served_at_once() {
    let rig = Rig::new(|pool| pool.max_size(2).probes(1));
    let both = (rig.acquire().await, rig.acquire().await);
    drop(both);
    rig.pool.breaker().probe();
    let mut probe = rig.acquire().await;
    let waiting = rig.wait();
    probe.dirty = true;

    Lease::release(probe).await;

    drop(waiting.await.unwrap());
    let status = rig.pool.status();
    assert_eq!((status.cleaning, status.idle), (0, 2), "{status:?}");
}
