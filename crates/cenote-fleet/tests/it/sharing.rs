//! Shares follow demand, and the server never has more sessions than the capacity.

use cenote::Pool;
use tokio::time::timeout;

use crate::SECOND;
use crate::rig::{Rig, Sessions, eventually, give_back};

#[tokio::test(start_paused = true)]
async fn a_busy_pool_gets_what_the_others_do_not_use() {
    let rig = Rig::new();
    let (busy, calm) = (rig.join(10).await, rig.join(10).await);

    let callers = busy.want(20);
    busy.lends(9).await;

    assert_eq!(calm.share(), 1, "the floor stays");
    assert_eq!((rig.peak(), rig.sessions()), (9, 9));
    drop(callers);
}

#[tokio::test(start_paused = true)]
async fn a_share_moves_to_another_pool_when_its_connections_are_closed() {
    let rig = Rig::new();
    let (first, second) = (rig.join(10).await, rig.join(10).await);
    let callers = first.want(9);
    first.lends(9).await;
    let waiting = second.want(9);
    second.lends(1).await;

    give_back(callers);
    second.lends(9).await;

    assert_eq!(rig.peak(), 10);
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_share_that_is_wanted_no_more_moves_within_a_second() {
    let rig = Rig::new();
    let minute = 60 * SECOND; // a member renews every six seconds
    let first = rig
        .join_with(|joining| joining.capacity(10).ttl(minute))
        .await;
    let second = rig
        .join_with(|joining| joining.capacity(10).ttl(minute))
        .await;
    let callers = first.want(9);
    first.lends(9).await;
    let waiting = second.want(9);
    second.lends(1).await;

    give_back(callers);
    let moved = timeout(SECOND, second.lends(9)).await;

    assert!(moved.is_ok(), "{} of 9 are lent", second.in_use());
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn an_annex_of_the_pool_is_part_of_the_budget() {
    let rig = Rig::new();
    let (joining, _, _) = rig.prepare();
    let sessions = || Sessions::new(joining.id(), &rig.server);
    let builder = Pool::builder(sessions()).acquire_timeout(None);
    let pool = builder.annex("writer", sessions(), 1).build().unwrap();
    let fleet = joining.capacity(5).join(&pool).await.unwrap();

    let writing = pool.annex().unwrap().acquire().await.unwrap();
    let mut leases = Vec::new();
    while let Ok(Ok(lease)) = timeout(SECOND, pool.acquire()).await {
        leases.push(lease);
    }

    assert_eq!((leases.len(), rig.peak()), (4, 5));
    drop((writing, leases));
    fleet.leave().await;
    assert_eq!(rig.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_busy_pools_share_evenly_and_by_weight() {
    let rig = Rig::new();
    let first = rig.join_with(|joining| joining.capacity(9)).await;
    let second = rig.join_with(|joining| joining.capacity(9).weight(2)).await;

    let (_many, _more) = (first.want(1), second.want(20));
    first.lends(1).await;
    second.lends(8).await;
    let _rest = first.want(20);

    second.has_share(6).await;
    assert_eq!(first.in_use(), 1, "all leases are out");
    assert_eq!(rig.sessions(), 9);
}

#[tokio::test(start_paused = true)]
async fn an_unused_share_stays_where_it_is() {
    let rig = Rig::new();
    let (first, second) = (rig.join(10).await, rig.join(10).await);
    first.grow(7).await;
    tokio::time::sleep(30 * SECOND).await;

    second.grow(3).await;

    assert_eq!(first.share(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_lowest_capacity_counts_and_the_dispute_is_shown() {
    let rig = Rig::new();
    let first = rig.join(10).await;
    let _callers = first.want(20);
    first.lends(10).await;

    let second = rig.join(6).await;
    first.has_share(5).await;

    let status = second.fleet.status();
    assert_eq!((status.capacity, status.disputed), (6, true));
}

#[tokio::test(start_paused = true)]
async fn sessions_beside_the_pool_take_a_part_of_the_capacity() {
    let rig = Rig::new();
    let seat = rig
        .join_with(|joining| joining.capacity(10).overhead(3))
        .await;

    let _callers = seat.want(20);

    seat.lends(7).await;
    assert_eq!(seat.fleet.status().granted, 10);
}

#[tokio::test(start_paused = true)]
async fn a_size_that_the_user_sets_is_put_right() {
    let rig = Rig::new();
    let seat = rig.join(4).await;
    seat.grow(4).await;

    seat.pool.resize(50).unwrap();

    let what = || format!("{:?}", seat.pool.status());
    eventually(what, || seat.pool.status().max_size == 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_is_told_in_one_line() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.grow(4).await;

    let line = seat.fleet.to_string();

    assert_eq!(line, "fleet: 4 of 10 out; here 4 (share 4)");
}
