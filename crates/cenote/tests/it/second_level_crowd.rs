//! Callers that wait for the base are not starved by idle resources above it.

use std::time::Duration;

use cenote::CloseReason;
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::two_levels::{assert_conserved, lines, on};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_given_up_for_a_caller_that_waits_for_the_base() {
    let base = Rig::with_max_size(2);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    drop((
        sessions.acquire().await.unwrap(),
        sessions.acquire().await.unwrap(),
    ));

    let (lease, took) = timed(base.acquire()).await;

    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_eq!(sessions.status().idle, 1, "one was enough");
    drop(lease);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_comes_back_is_given_up_unless_its_own_pool_has_a_waiter() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.max_size(1).build().unwrap();
    let held = sessions.acquire().await.unwrap();
    let own = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.acquire().await }
    });
    settle().await;
    let mut foreign = base.wait();
    drop(held);

    let held = own.await.unwrap().unwrap();
    settle().await;
    assert!(!foreign.is_served());
    drop(held);
    settle().await;

    assert!(foreign.is_served(), "no caller wants the session any more");
    drop(foreign);
    settle().await;
    assert_eq!(sessions.status().closes.by(CloseReason::Refused), 1);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_opened_for_no_one_is_given_up_within_a_second() {
    let base = Rig::with_max_size(1);
    let (backend, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    backend.always(Call::Open, Gate::Slow(Duration::from_millis(100)));
    assert!(cenote_testkit::cut(1, sessions.acquire()).await.is_none());
    settle().await;

    let (lease, took) = timed(base.acquire()).await;

    assert!(took < Duration::from_millis(1_500), "{took:?}");
    drop(lease);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn sessions_that_min_idle_asks_for_are_not_given_up() {
    let base = Rig::with_max_size(2);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.min_idle(1).build().unwrap();
    sessions.warm().await.unwrap();
    let _other = base.acquire().await;

    let refused = base.pool.acquire_within(3 * SECOND).await;

    assert!(refused.is_err());
    assert_eq!(sessions.status().closes.total(), 0);
    sessions.close();
}

#[tokio::test(start_paused = true)]
async fn two_pools_that_refill_do_not_take_the_base_from_each_other_for_ever() {
    let base = Rig::with_max_size(1);
    let (_, first) = on(&base.pool);
    let (_, second) = on(&base.pool);
    let first = first.min_idle(1).max_lifetime(None).build().unwrap();
    let second = second.min_idle(1).max_lifetime(None).build().unwrap();
    let _ = first.warm().await;
    let _ = second.warm().await;

    advance(600 * SECOND).await;

    let opened = first.status().opened + second.status().opened;
    assert!(opened < 5, "{opened} opens");
    second.close();
    assert_conserved(&base.pool, first).await;
}

#[tokio::test(start_paused = true)]
async fn two_pools_share_a_base_that_is_too_small_for_both() {
    let base = Rig::with_max_size(1);
    let (_, first) = on(&base.pool);
    let (_, second) = on(&base.pool);
    let (first, second) = (first.build().unwrap(), second.build().unwrap());

    for _ in 0..20 {
        let (session, took) = timed(first.acquire()).await;
        drop(session.unwrap());
        assert!(took < Duration::from_millis(100), "{took:?}");
        let (session, took) = timed(second.acquire()).await;
        drop(session.unwrap());
        assert!(took < Duration::from_millis(100), "{took:?}");
    }

    second.close();
    drop(second);
    assert_conserved(&base.pool, first).await;
}

#[tokio::test(start_paused = true)]
async fn the_opens_of_a_pool_do_not_make_it_give_up_its_own_sessions() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.max_size(5).build().unwrap();
    let held = sessions.acquire().await.unwrap();
    let other = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.acquire().await.map(drop) }
    });
    settle().await;
    assert_eq!(base.pool.status().waiting, 1, "it may grow");

    drop(held);
    other.await.unwrap().unwrap();
    settle().await;

    assert_eq!(sessions.status().closes.total(), 0);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn all_idle_streams_of_one_line_are_given_up_together() {
    let (_, base) = lines(2);
    let (_, streams) = on(&base);
    let streams = streams.shared_by(3).build().unwrap();
    let mut six = Vec::new();
    for _ in 0..6 {
        six.push(streams.acquire().await.unwrap());
    }
    assert_eq!(base.status().in_use, 2);
    drop(six);

    let (lease, took) = timed(base.acquire()).await;

    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_eq!(streams.status().idle, 3, "those of the other line");
    drop(lease);
    assert_conserved(&base, streams).await;
}
