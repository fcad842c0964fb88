//! Keys that give places up for others: which, when, and how fair that is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate};
use tokio::time::sleep;

use crate::SECOND;
use crate::rig::{Key, Rig};

const MILLISECOND: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_resource_of_another_key_is_closed() {
    let rig = Rig::new(3, 3);
    let all = (
        rig.acquire(1).await,
        rig.acquire(2).await,
        rig.acquire(3).await,
    );
    drop(all);
    for key in [2, 1, 3] {
        advance(SECOND).await;
        drop(rig.acquire(key).await);
    }
    let second = rig.pools.pool(&2).unwrap();

    let _new = rig.acquire(4).await;
    let after_one = [1, 2, 3].map(|key| rig.backend(key).alive());
    let _newer = rig.acquire(5).await;
    let after_two = [1, 2, 3].map(|key| rig.backend(key).alive());

    assert_eq!((after_one, after_two), ([1, 0, 1], [0, 0, 1]));
    assert_eq!(second.status().closes.by(CloseReason::Shrunk), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_key_with_several_idle_resources_the_longest_unused_one_is_closed() {
    let rig = Rig::new(3, 3);
    let mut two = rig.hold(1, 2).await;
    let other = rig.acquire(2).await;
    drop(two.remove(0));
    advance(SECOND).await;
    drop(other);
    advance(SECOND).await;
    drop(two);

    let _new = rig.acquire(3).await;

    assert_eq!((rig.backend(1).alive(), rig.backend(2).alive()), (1, 1));
    assert_eq!(
        rig.acquire(1).await.serial,
        2,
        "the first was unused for longer"
    );
}

#[tokio::test(start_paused = true)]
async fn no_lease_is_taken_away_and_no_resource_is_closed_while_places_are_free() {
    let rig = Rig::new(3, 2);
    let held = rig.hold(1, 2).await;

    drop(rig.acquire(2).await);
    drop(held);
    drop(rig.acquire(2).await);
    advance(SECOND).await;

    assert_eq!((rig.alive(), rig.pools.status().held), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_key_without_a_place_gets_the_next_return_of_any_key() {
    let rig = Rig::new(2, 2);
    let mut held = rig.hold(1, 2).await;
    let mut same = rig.wait(1);
    let mut other = rig.wait(2);
    settle().await;

    held.pop();
    settle().await;

    assert!(other.is_served() && !same.is_served());
    held.pop();
    assert!(same.await.is_ok(), "the key is served by its own return");
}

#[tokio::test(start_paused = true)]
async fn only_as_many_resources_are_given_up_as_other_keys_wait_for() {
    let rig = Rig::new(10, 10);
    let held = rig.hold(1, 10).await;
    let waiting = (rig.wait(2), rig.wait(3));
    settle().await;

    drop(held);
    let served = (waiting.0.await.unwrap(), waiting.1.await.unwrap());
    advance(SECOND).await;

    assert_eq!((rig.backend(1).alive(), rig.pools.status().held), (8, 10));
    drop(served);
}

#[tokio::test(start_paused = true)]
async fn one_caller_that_waits_for_long_costs_one_place() {
    let rig = Rig::new(10, 10);
    let held = rig.hold(1, 10).await;
    let waiting = rig.wait(2);
    advance(SECOND * 10).await;
    assert_eq!(rig.pools.status().waiting, 1);

    drop(held);
    let served = waiting.await.unwrap();
    advance(SECOND).await;

    assert_eq!((rig.backend(1).alive(), rig.backend(2).alive()), (9, 1));
    drop(served);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gave_up_costs_no_place() {
    let rig = Rig::new(1, 1);
    let held = rig.acquire(1).await;
    let gives_up = rig.wait(2);
    settle().await;
    drop(gives_up);
    drop(held);
    advance(SECOND).await;

    assert_eq!(rig.pools.status().waiting, 0);
    assert_eq!(rig.backend(2).calls(Call::Open), 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_place_that_comes_for_a_caller_that_gave_up_goes_to_the_next_key() {
    let rig = Rig::new(1, 1);
    let held = rig.acquire(1).await;
    let gives_up = rig.wait(2);
    let waits = rig.wait(3);
    settle().await;

    drop((gives_up, held));

    assert!(waits.await.is_ok());
    assert_eq!(rig.backend(2).calls(Call::Open), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_becomes_idle_without_a_return_is_found() {
    let rig = Rig::new(1, 1);
    rig.backend(1).always(Call::Open, Gate::Slow(SECOND));
    let gives_up = rig.wait(1);
    settle().await;
    let waiting = rig.wait(2);
    settle().await;

    drop(gives_up);
    advance(SECOND).await;

    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn two_keys_that_want_each_others_place_take_turns() {
    let rig = Rig::new(1, 1);
    let turns = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = [1, 2]
        .map(|key| work(&rig, key, 50, &turns))
        .into_iter()
        .collect();

    for task in tasks {
        task.await.unwrap();
    }

    let turns = turns.lock().unwrap();
    let longest = turns
        .chunk_by(|one, next| one == next)
        .map(<[_]>::len)
        .max();
    assert!(longest <= Some(2), "{turns:?}");
}

/// Holds a resource of `key` for a millisecond, `times` times.
fn work(
    rig: &Rig,
    key: Key,
    times: usize,
    turns: &Arc<Mutex<Vec<Key>>>,
) -> tokio::task::JoinHandle<()> {
    let (pools, turns) = (rig.pools.clone(), Arc::clone(turns));
    tokio::spawn(async move {
        for _ in 0..times {
            let lease = pools.acquire(&key).await.unwrap();
            turns.lock().unwrap().push(key);
            sleep(MILLISECOND).await;
            drop(lease);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_hot_key_does_not_starve_the_others() {
    let rig = Rig::new(10, 10);
    let turns = Arc::new(Mutex::new(Vec::new()));
    // A hundred callers of one key, and one caller of each of five others.
    let hot: Vec<_> = (0..100).map(|_| work(&rig, 0, 1000, &turns)).collect();
    sleep(MILLISECOND * 20).await;
    let began = turns.lock().unwrap().len();

    let others: Vec<_> = (1..=5).map(|key| work(&rig, key, 100, &turns)).collect();
    for other in others {
        other.await.unwrap();
    }

    let mut by_key: HashMap<_, usize> = HashMap::new();
    for key in &turns.lock().unwrap()[began..] {
        *by_key.entry(*key).or_default() += 1;
    }
    // Five places of ten are left to the hot key, so it has about five turns in the time in which
    // each of the others has one.
    assert!(by_key[&0] <= 100 * 10, "{by_key:?}");
    assert!(by_key[&0] >= 100 * 3, "{by_key:?}");
    hot.iter().for_each(|task| task.abort());
}

#[tokio::test(start_paused = true)]
async fn keys_that_all_want_more_end_with_equal_shares() {
    let rig = Rig::new(12, 12);
    let turns = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..3)
        .flat_map(|key| (0..20).map(move |_| key))
        .map(|key| work(&rig, key, 10_000, &turns))
        .collect();

    sleep(SECOND * 2).await;
    let shares = [0, 1, 2].map(|key| rig.backend(key).alive());

    assert!(
        shares.iter().all(|share| (3..=5).contains(share)),
        "{shares:?}"
    );
    let opens = || {
        [0, 1, 2]
            .map(|key| rig.backend(key).calls(Call::Open))
            .iter()
            .sum::<usize>()
    };
    let before = opens();
    sleep(SECOND / 2).await;
    assert_eq!(opens(), before, "equal shares are left alone");
    tasks.iter().for_each(|task| task.abort());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_and_awaited_gives_up_its_place_too() {
    let rig = Rig::new(1, 1);
    let held = rig.acquire(1).await;
    let waiting = rig.wait(2);
    settle().await;

    Lease::release(held).await;

    assert!(waiting.await.is_ok());
}
