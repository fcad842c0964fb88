//! A look inside: slots, waiters, the time that leases were out, and control of a pool of any kind.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use cenote::breaker::BreakerState;
use cenote::registry::{self, AnyPool};
use cenote::status::SlotState;
use cenote::{Lease, Manager, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, GatedManager, Rig};

use crate::support::rigs::hold;

const SECOND: Duration = Duration::from_secs(1);

fn states<M: Manager>(pool: &Pool<M>) -> Vec<SlotState> {
    pool.slots().iter().map(|slot| slot.state).collect()
}

fn any<M: Manager>(pool: &Pool<M>) -> AnyPool {
    let mut all = registry::pools().into_iter();
    all.find(|any| any.number() == pool.number())
        .expect("the pool lives")
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_shown_in_every_state_it_is_in() {
    let rig = Rig::with_max_size(2);
    for call in [Call::Open, Call::Check, Call::Clean, Call::Close] {
        rig.backend.always(call, Gate::Slow(SECOND));
    }
    let second = SlotState::Vacant;

    assert_eq!(states(&rig.pool), [second; 2]);
    assert_eq!(rig.pool.slots()[0].since, None, "it was never used");
    let waiting = rig.wait();
    settle().await;
    assert_eq!(states(&rig.pool), [SlotState::Opening, second]);
    assert_eq!(rig.pool.slots()[0].id, None);
    advance(SECOND).await;
    let mut lease = waiting.await.unwrap();
    assert_eq!(states(&rig.pool), [SlotState::Leased, second]);
    lease.dirty = true;
    drop(lease);
    assert_eq!(states(&rig.pool), [SlotState::Cleaning, second]);
    advance(SECOND).await;
    assert_eq!(states(&rig.pool), [SlotState::Idle, second]);
    advance(6 * SECOND).await;
    let checked = rig.wait();
    settle().await;
    assert_eq!(states(&rig.pool), [SlotState::Checking, second]);
    advance(SECOND).await;
    Lease::discard(checked.await.unwrap());
    assert_eq!(states(&rig.pool), [SlotState::Closing, second]);
    assert_eq!(rig.pool.slots()[0].id, Some(1));
    advance(SECOND).await;
    assert_eq!(states(&rig.pool), [second; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_on_a_tray_is_shown_as_leased_or_idle() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let lease = rig.acquire().await;
    advance(3 * SECOND).await;

    let leased = rig.pool.slots().remove(0);
    assert_eq!((leased.state, leased.id), (SlotState::Leased, Some(1)));
    assert_eq!(leased.since, Some(3 * SECOND));
    drop(lease);
    drop(rig.acquire().await);
    advance(2 * SECOND).await;
    let idle = rig.pool.slots().remove(0);
    assert_eq!((idle.state, idle.id), (SlotState::Idle, Some(1)));
    assert_eq!(idle.since, Some(2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn reserved_places_and_slots_above_the_size_are_shown() {
    let rig = Rig::with_max_size(3);
    let leases = hold(&rig, 3).await;

    rig.pool.resize(1).unwrap();
    assert_eq!(states(&rig.pool), [SlotState::Leased; 3]);
    drop(leases);
    settle().await;
    rig.pool.resize(2).unwrap();
    let _permit = rig.pool.reserve().await.unwrap();
    let seen = states(&rig.pool);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.contains(&SlotState::Reserved), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_waiters_are_shown_in_the_order_of_the_queue() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(rig.wait());
        settle().await;
        advance(SECOND / 2).await;
    }

    let seen = rig.pool.waiters(3);

    let waited: Vec<_> = seen.iter().map(|waiter| waiter.waited).collect();
    assert_eq!(waited, [SECOND / 2 * 5, SECOND / 2 * 4, SECOND / 2 * 3]);
    assert_eq!(any(&rig.pool).waiters(9).unwrap().len(), 5);
    assert!(rig.pool.waiters(0).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_time_that_leases_were_out_is_added_up_on_trays_and_off_them() {
    let rig = Rig::with_max_size(2);
    let (first, second) = (rig.acquire().await, rig.acquire().await);
    advance(2 * SECOND).await;
    drop(first);
    assert_eq!(rig.pool.status().held_time, 2 * SECOND);

    let again = rig.acquire().await;
    advance(SECOND).await;
    drop(again);
    drop(rig.acquire().await);
    Lease::discard(second);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.held_time, status.released), (6 * SECOND, 4));
    assert_eq!(any(&rig.pool).status().unwrap().held_time, 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_out_or_was_detached_has_no_part_in_the_time_of_returned_ones() {
    let rig = Rig::with_max_size(2);
    let _out = rig.acquire().await;
    let detached = rig.acquire().await;
    advance(SECOND).await;
    drop(Lease::detach(detached));

    assert_eq!(rig.pool.status().held_time, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_any_kind_is_controlled_like_a_pool() {
    let rig = Rig::with_max_size(2);
    let any = any(&rig.pool);
    drop(hold(&rig, 2).await);

    assert_eq!(any.resize(0).unwrap().unwrap_err().field(), "max_size");
    any.resize(1).unwrap().unwrap();
    settle().await;
    assert_eq!(rig.pool.status().total, 1);
    any.suspend();
    assert!(rig.pool.is_suspended() && any.is_suspended());
    any.resume();
    any.invalidate();
    settle().await;
    assert_eq!(rig.pool.status().total, 0);
    any.trip_breaker();
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    any.reset_breaker();
    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    assert!(!any.is_closed());
    any.close();
    assert!(rig.pool.is_closed() && any.is_closed());
}

#[tokio::test(start_paused = true)]
async fn control_of_a_pool_of_any_kind_reaches_its_annex() {
    let manager = || GatedManager(Arc::default());
    let builder = Pool::builder(manager()).annex("writer", manager(), 1);
    let pool = builder.build().unwrap();
    let annex = pool.annex().unwrap();

    any(&pool).suspend();
    assert!(annex.is_suspended());
    any(annex).resume();
    assert!(!annex.is_suspended() && pool.is_suspended());
    any(&pool).trip_breaker();
    assert_eq!(annex.breaker().state(), BreakerState::Inactive);
    any(&pool).close();
    assert!(annex.is_closed());
}

#[tokio::test(start_paused = true)]
async fn the_waiters_of_an_annex_are_seen_in_the_pool() {
    let manager = || GatedManager(Arc::default());
    let builder = Pool::builder(manager()).max_size(1);
    let pool = builder.annex("writer", manager(), 1).build().unwrap();
    let annex = pool.annex().unwrap().clone();
    let _held = (
        pool.acquire().await.unwrap(),
        annex.acquire().await.unwrap(),
    );
    let (mut first, mut second) = (Box::pin(annex.acquire()), Box::pin(pool.acquire()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    advance(SECOND).await;
    assert!(second.as_mut().poll(&mut context).is_pending());

    let waited: Vec<_> = pool.waiters(5).iter().map(|one| one.waited).collect();

    assert_eq!(waited, [SECOND, Duration::ZERO]);
    assert_eq!(pool.waiters(1).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn orders_to_a_pool_that_is_gone_do_nothing() {
    let rig = Rig::with_max_size(1);
    let any = any(&rig.pool);
    drop(rig);

    any.suspend();
    any.close();
    any.trip_breaker();

    assert!(any.resize(3).is_none() && any.slots().is_none() && any.waiters(1).is_none());
    assert!(any.is_closed() && !any.is_suspended());
}
