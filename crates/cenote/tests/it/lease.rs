//! The lease: its accessors, and the ways in which it ends.

use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::clock::{advance, now, settle, timed};
use cenote_testkit::{Call, Gate, GatedManager, Rig, Thing, cut};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_lease_is_sent_kept_for_ever_and_shown() {
    fn assert_lease<T: Send + std::fmt::Debug + 'static>(_: &T) {}
    let rig = Rig::with_max_size(1);

    let lease: Lease<GatedManager> = rig.acquire().await;

    assert_lease(&lease);
    let shown = format!("{lease:?}");
    assert!(shown.contains("id: 1"), "{shown}");
    assert!(shown.contains(file!()), "{shown}");
    assert!(shown.contains("serial: 1"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_its_resource() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;

    lease.dirty = true;
    let by_ref: &Thing = lease.as_ref();
    assert!(by_ref.dirty);
    let by_mut: &mut Thing = lease.as_mut();
    by_mut.dirty = false;

    assert!(!lease.dirty);
}

#[tokio::test(start_paused = true)]
async fn a_lease_knows_its_resource() {
    let rig = Rig::with_max_size(2);
    advance(SECOND).await;
    let opened_at = now();
    drop(rig.acquire().await);
    advance(SECOND).await;

    let again = rig.acquire().await;
    let fresh = rig.acquire().await;

    assert_eq!((Lease::id(&again), Lease::uses(&again)), (1, 2));
    assert_eq!((Lease::id(&fresh), Lease::uses(&fresh)), (2, 1));
    assert_eq!(Lease::opened_at(&again), opened_at);
    assert_eq!(Lease::age(&again), SECOND);
    assert_eq!(Lease::age(&fresh), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_a_resource_is_never_used_again() {
    let rig = Rig::with_max_size(1);
    let mut seen = Vec::new();

    for _ in 0..5 {
        let lease = rig.acquire().await;
        seen.push(Lease::id(&lease));
        Lease::discard(lease);
    }

    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_label_is_shown_with_its_lease_and_ends_with_it() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    Lease::label(&lease, "draft");
    Lease::label(&lease, format!("nightly report {}", 7));
    let shown = rig.pool.leases()[0].label.clone();
    drop(lease);
    let _next = rig.acquire().await;

    assert_eq!(shown.as_deref(), Some("nightly report 7"));
    assert_eq!(rig.pool.leases()[0].label, None);
}

#[tokio::test(start_paused = true)]
async fn a_discarded_resource_is_closed_and_not_returned() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    Lease::discard(lease);
    assert_eq!((rig.pool.status().idle, rig.pool.status().closing), (0, 1));
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.released, status.discarded), (1, 1));
    assert_eq!((status.closing, status.total), (0, 0));
    assert_eq!(
        (rig.backend.calls(Call::Close), rig.backend.alive()),
        (1, 0)
    );
    assert_eq!(rig.recorder.of("discarded"), ["discarded 1"]);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 discarded"]);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_discarded_resource_keeps_its_slot_until_it_is_closed() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Close, Gate::Slow(100 * MS));
    Lease::discard(rig.acquire().await);

    let (lease, waited) = timed(rig.acquire()).await;

    assert_eq!(Lease::id(&lease), 2);
    assert!(waited >= 100 * MS, "{waited:?}");
    assert_eq!(rig.backend.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_detached_resource_leaves_the_pool_for_good() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    let thing = Lease::detach(lease);
    assert_eq!((rig.pool.status().total, rig.pool.status().closing), (0, 0));
    let next = rig.acquire().await;
    rig.pool.close();
    drop(next);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.detached, status.acquired), (1, 2));
    assert_eq!(
        status.discarded + status.closes.by(CloseReason::Discarded),
        0
    );
    assert_eq!(rig.backend.calls(Call::Close), 1, "only the other one");
    assert_eq!((rig.backend.alive(), thing.serial), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn detach_frees_its_slot_at_once_for_a_waiter() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    let waiting = rig.wait();

    let thing = Lease::detach(lease);
    let (served, waited) = timed(waiting).await;

    assert_eq!(served.unwrap().serial, 2);
    assert_eq!((thing.serial, waited), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn the_return_is_done_when_an_awaited_release_ends() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Clean, Gate::Slow(50 * MS));
    let mut lease = rig.acquire().await;
    lease.dirty = true;

    let ((), took) = timed(Lease::release(lease)).await;

    assert!(took >= 50 * MS && took <= 52 * MS, "{took:?}");
    let lease = rig.pool.try_acquire().unwrap().unwrap();
    assert!(!lease.dirty);
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_of_a_good_resource_takes_no_time() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    let ended = cut(1, Lease::release(lease)).await;

    assert_eq!(ended, Some(()));
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_lets_the_waiter_it_served_run_first() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    let pool = rig.pool.clone();
    let waiting = tokio::spawn(async move { drop(pool.acquire().await.unwrap()) });
    settle().await;

    Lease::release(lease).await;

    assert!(waiting.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_serves_the_next_waiter() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    let waiting = rig.wait();

    Lease::release(lease).await;

    let served = waiting.await.unwrap();
    assert_eq!((Lease::id(&served), served.dirty), (1, false));
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_of_a_bad_resource_ends_when_it_is_closed() {
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        let rig = Rig::new(|pool| pool.max_size(1).clean_timeout(3 * SECOND));
        rig.backend.once(Call::Clean, gate);
        let mut lease = rig.acquire().await;
        lease.dirty = true;

        let ((), took) = timed(Lease::release(lease)).await;
        settle().await;

        assert!(took <= 3 * SECOND + 2 * MS, "{gate:?} took {took:?}");
        let closed = rig.pool.status().closes;
        assert_eq!(closed.by(CloseReason::FailedClean), 1, "{gate:?}");
        assert_eq!(rig.backend.alive(), 0, "{gate:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_to_a_closed_pool_ends_when_the_resource_is_closed() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    rig.pool.close();
    rig.backend.once(Call::Close, Gate::Slow(50 * MS));

    let ((), took) = timed(Lease::release(lease)).await;

    assert!(took >= 50 * MS, "{took:?}");
    assert_eq!(
        (rig.backend.calls(Call::Close), rig.backend.alive()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_midway_is_finished_by_the_pool() {
    for polls in 0..8 {
        let rig = Rig::new(|pool| {
            pool.max_size(1)
                .check_on_return(true)
                .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
        });
        for call in [Call::Clean, Call::Check, Call::BeforeRelease] {
            rig.backend.once(call, Gate::Slow(10 * MS));
        }
        let mut lease = rig.acquire().await;
        lease.dirty = true;
        let waiting = rig.wait();

        let ended = cut(polls, Lease::release(lease)).await;
        let served = waiting.await.unwrap();

        assert_eq!(ended.is_some(), polls >= 4, "after {polls} polls");
        assert_eq!((Lease::id(&served), served.dirty), (1, false));
        assert_eq!(rig.backend.calls(Call::Clean), 1);
        assert_eq!(rig.backend.calls(Call::BeforeRelease), 1);
        assert_eq!(rig.pool.status().released, 1);
        drop(served);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_broken_resource_that_is_dropped_midway_is_finished_by_the_pool() {
    for polls in 0..3 {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Close, Gate::Slow(10 * MS));
        let mut lease = rig.acquire().await;
        lease.broken = true;

        let _ = cut(polls, Lease::release(lease)).await;
        advance(20 * MS).await;

        assert_eq!(rig.backend.calls(Call::Close), 1, "after {polls} polls");
        assert_eq!((rig.backend.alive(), rig.pool.status().closing), (0, 0));
        rig.assert_full_service().await;
    }
}
