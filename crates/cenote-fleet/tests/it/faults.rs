//! Members that lose their engine, fall silent, or find the cell gone.

use std::sync::atomic::Ordering;

use cenote_fleet::Joining;
use tokio::time::sleep;

use crate::SECOND;
use crate::rig::{Rig, Rigged, eventually, give_back};

#[tokio::test(start_paused = true)]
async fn a_member_without_engine_stops_before_its_ttl_and_goes_on_when_it_is_back() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.grow(4).await;

    seat.line.is_cut.store(true, Ordering::Relaxed);
    sleep(7 * SECOND).await;
    assert_eq!(seat.share(), 4, "the lease goes on");
    sleep(2 * SECOND).await;

    let status = seat.fleet.status();
    assert_eq!((status.share, status.lapses), (0, 1));
    assert!(seat.pool.is_suspended());
    assert_eq!(rig.sessions(), 0);
    seat.line.is_cut.store(false, Ordering::Relaxed);
    drop(seat.pool.acquire().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_member_that_has_lost_its_connection_lends_nothing_and_keeps_what_it_has() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.grow(4).await;
    let held = seat.want(1);
    seat.lends(1).await;

    for line in [&seat.line.is_lost, &seat.line.fails] {
        line.store(true, Ordering::Relaxed);
    }
    sleep(SECOND).await;
    let waiting = seat.want(9);
    sleep(SECOND).await;

    assert!(seat.pool.is_suspended());
    let losses = seat.fleet.status().losses;
    assert_eq!((seat.in_use(), rig.sessions(), losses), (1, 4, 1));
    for line in [&seat.line.is_lost, &seat.line.fails] {
        line.store(false, Ordering::Relaxed);
    }
    seat.lends(10).await;
    drop((held, waiting));
}

#[tokio::test(start_paused = true)]
async fn a_floor_that_is_kept_is_used_while_the_engine_is_away() {
    let rig = Rig {
        can_count: false,
        ..Rig::new()
    };
    let set = |joining: Joining<Rigged>| joining.capacity(10).floor(2).members_max(3);
    let (cut, other) = (rig.join_with(set).await, rig.join_with(set).await);
    cut.grow(4).await;

    cut.line.is_cut.store(true, Ordering::Relaxed);
    let greedy = other.want(20);
    other.lends(6).await;
    let modest = cut.want(3);
    sleep(9 * SECOND).await;

    assert_eq!((cut.in_use(), cut.share()), (2, 2), "its floor");
    assert_eq!(other.in_use(), 6, "ten without the floors of two others");
    cut.line.is_cut.store(false, Ordering::Relaxed);
    give_back(greedy);
    cut.lends(3).await;
    assert!(rig.peak() <= 10, "{}", rig.peak());
    drop(modest);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_is_told_in_the_status() {
    let rig = Rig::new();
    let seat = rig.join(10).await;

    seat.line.fails.store(true, Ordering::Relaxed);

    let what = || format!("{:?}", seat.fleet.status());
    let error = "the engine failed: connection refused";
    eventually(what, || {
        seat.fleet.status().last_error.as_deref() == Some(error)
    })
    .await;
    seat.line.fails.store(false, Ordering::Relaxed);
    eventually(what, || seat.fleet.status().last_error.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_member_is_fenced_before_its_share_is_given_away() {
    let rig = Rig::new();
    let (silent, other) = (rig.join(10).await, rig.join(10).await);
    let leases = silent.want(9);
    silent.lends(9).await;
    let _waiting = other.want(9);
    other.lends(1).await;

    silent.line.is_cut.store(true, Ordering::Relaxed);
    other.lends(9).await;

    assert_eq!(rig.peak(), 10, "the nine were ended before");
    assert!(other.fleet.status().fences >= 1);
    drop(leases);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_buried_joins_again_with_new_connections() {
    let rig = Rig::new();
    let (silent, other) = (rig.join(10).await, rig.join(10).await);
    silent.grow(5).await;
    silent.line.is_cut.store(true, Ordering::Relaxed);
    let what = || format!("{:?}", other.fleet.status());
    eventually(what, || other.fleet.status().members.len() == 1).await;

    silent.line.is_cut.store(false, Ordering::Relaxed);

    eventually(what, || other.fleet.status().members.len() == 2).await;
    let lease = silent.pool.acquire().await.unwrap();
    assert!(rig.server().is_alive(*lease));
}

#[tokio::test(start_paused = true)]
async fn after_a_wipe_no_member_grows_for_a_ttl() {
    let rig = Rig::new();
    let (first, second) = (rig.join(10).await, rig.join(10).await);
    let _leases = first.want(6);
    first.lends(6).await;

    rig.memory.overwrite(None);
    let _waiting = second.want(4);
    sleep(9 * SECOND).await;
    assert_eq!((second.in_use(), second.fleet.status().learned), (1, false));

    second.lends(4).await;
    assert!(second.fleet.status().learned);
    assert_eq!(rig.peak(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_garbled_cell_stops_the_members_and_is_not_overwritten() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.grow(3).await;

    rig.memory.overwrite(Some(vec![0]));
    seat.has_share(0).await;

    let error = seat.fleet.status().last_error.unwrap();
    assert!(
        error.starts_with("the cell of the fleet is garbled"),
        "{error}"
    );
    rig.memory.overwrite(None);
    drop(seat.pool.acquire().await.unwrap());
}
