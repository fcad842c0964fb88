//! Observers come and go while a pool lives, and the list of living pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::breaker::BreakerState;
use cenote::event::{Acquired, Released};
use cenote::{Health, Observer, Pool, registry};
use cenote_testkit::clock::advance;
use cenote_testkit::{Recorder, Rig};

type Watched = Arc<dyn Observer>;

fn recorder() -> (Arc<Recorder>, Watched) {
    let recorder = Arc::new(Recorder::default());
    (recorder.clone(), recorder)
}

fn unwatched() -> Pool<cenote::Closures<()>> {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
    pool.build().expect("the settings are valid")
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_what_happens_while_it_is_attached() {
    let pool = unwatched();
    drop(pool.acquire().await.unwrap());
    let (recorder, observer) = recorder();

    pool.attach(Arc::clone(&observer));
    drop(pool.acquire().await.unwrap());
    assert!(pool.detach(&observer));
    drop(pool.acquire().await.unwrap());

    assert_eq!(
        (recorder.of("acquired").len(), recorder.of("released").len()),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_the_end_of_a_lease_that_began_before_it() {
    let pool = unwatched();
    drop(pool.acquire().await.unwrap());
    let lease = pool.acquire().await.unwrap();
    let (recorder, observer) = recorder();

    pool.attach(observer);
    advance(Duration::from_secs(3)).await;
    drop(lease);

    let released = recorder.of("released");
    assert!(
        released.len() == 1 && released[0].contains("3s"),
        "{released:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_is_not_attached_cannot_be_detached() {
    let pool = unwatched();
    let (first, second) = (recorder().1, recorder().1);
    pool.attach(Arc::clone(&first));

    assert!(!pool.detach(&second));
    assert!(pool.detach(&first));
    assert!(!pool.detach(&first));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_attached_twice_hears_everything_twice() {
    let pool = unwatched();
    let (recorder, observer) = recorder();
    pool.attach(Arc::clone(&observer));
    pool.attach(Arc::clone(&observer));

    drop(pool.acquire().await.unwrap());
    assert!(pool.detach(&observer));
    drop(pool.acquire().await.unwrap());

    assert_eq!(recorder.of("acquired").len(), 3);
}

/// Detaches itself at the first event.
struct Once(
    Pool<cenote::Closures<()>>,
    AtomicUsize,
    std::sync::OnceLock<Watched>,
);

impl Observer for Once {
    fn acquired(&self, _: &Acquired<'_>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        let own = self.2.get().expect("it was set before the first event");
        assert!(self.0.detach(own));
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_detach_itself() {
    let pool = unwatched();
    let once = Arc::new(Once(pool.clone(), AtomicUsize::new(0), Default::default()));
    let observer: Watched = once.clone();
    let _ = once.2.set(Arc::clone(&observer));
    pool.attach(observer);

    drop(pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());

    assert_eq!(once.1.load(Ordering::Relaxed), 1);
}

struct Panics;

impl Observer for Panics {
    fn released(&self, _: &Released<'_>) {
        panic!("an observer's bug");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_panics_does_not_keep_the_others_from_hearing() {
    let pool = unwatched();
    let (recorder, observer) = recorder();
    pool.attach(Arc::new(Panics));
    pool.attach(observer);

    drop(pool.acquire().await.unwrap());

    assert_eq!(recorder.of("released").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_living_pool_is_on_the_list_and_no_other() {
    let name = "events_attached::every_living_pool";
    let on_list = || {
        registry::pools()
            .into_iter()
            .filter(|pool| pool.name() == name)
    };
    let rig = Rig::new(|pool| pool.name(name).max_size(7));
    let other = Rig::new(|pool| pool.name(name));
    assert_eq!(on_list().count(), 2);

    drop(other);
    let listed: Vec<_> = on_list().collect();

    assert_eq!(listed.len(), 1);
    let held = rig.acquire().await;
    assert_eq!(listed[0].status().unwrap().in_use, 1);
    assert_eq!(listed[0].leases().unwrap()[0].id, 1);
    assert_eq!(listed[0].health(), Some(Health::Healthy));
    assert_eq!(listed[0].config().unwrap().max_size, 7);
    assert_eq!(listed[0].breaker_state(), Some(BreakerState::Active));
    drop((held, rig));
    assert!(listed[0].status().is_none() && listed[0].leases().is_none());
    assert_eq!(on_list().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_last_handle_is_gone_is_not_listed_though_a_lease_is_out() {
    let name = "events_attached::last_handle";
    let rig = Rig::new(|pool| pool.name(name));
    let _held = rig.acquire().await;

    drop(rig);

    assert!(registry::pools().iter().all(|pool| pool.name() != name));
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_attached_by_the_list() {
    let name = "events_attached::by_the_list";
    let rig = Rig::new(|pool| pool.name(name));
    let listed = registry::pools();
    let listed = listed.iter().find(|pool| pool.name() == name).unwrap();
    let (recorder, observer) = recorder();

    listed.attach(Arc::clone(&observer));
    drop(rig.acquire().await);

    assert_eq!(recorder.of("acquired").len(), 1);
    assert!(listed.detach(&observer));
}

#[tokio::test(start_paused = true)]
async fn a_detached_observer_is_let_go_when_the_lease_that_it_heard_of_comes_back() {
    let pool = unwatched();
    let (recorder, observer) = recorder();
    pool.attach(Arc::clone(&observer));
    drop(pool.acquire().await.unwrap());
    let lease = pool.acquire().await.unwrap();
    let weak = Arc::downgrade(&observer);

    assert!(pool.detach(&observer));
    drop((recorder, observer));
    drop(lease);

    assert!(weak.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_comes_while_a_lease_is_out_hears_beside_the_one_before() {
    let pool = unwatched();
    let (first, observer) = recorder();
    pool.attach(observer);
    drop(pool.acquire().await.unwrap());
    let lease = pool.acquire().await.unwrap();
    let (second, observer) = recorder();

    pool.attach(observer);
    drop(lease);

    assert_eq!(first.of("released").len(), 2);
    assert_eq!(second.of("released").len(), 1);
}
