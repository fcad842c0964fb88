//! The verdict of the storm, on a sound pool and on three that are not.

use std::future::pending;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

use super::{Verdict, weather};
use crate::harness::backend::{Backend, Thing};
use crate::harness::peer::{Kind, Peer, Setup};
use crate::harness::runtime::Runtime;

const SOUND: Verdict = Verdict {
    lost: 0,
    stuck: 0,
    over: 0,
};

fn storm<P: Peer>() -> impl Future<Output = Verdict> {
    let setup = Setup {
        backend: Backend::default(),
        ..Setup::of_size(super::SIZE)
    };
    weather::<P>(setup, 1)
}

/// Plays the storm on a clock that moves only when all tasks wait, so that it is the same on every
/// machine.
fn verdict<P: Peer>() -> Verdict {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(storm::<P>())
}

#[test]
fn a_pool_that_keeps_its_word_is_sound() {
    assert_eq!(verdict::<Sound>(), SOUND);
    for runtime in Runtime::ALL {
        assert_eq!(runtime.run(storm::<Sound>()), SOUND);
    }
}

#[test]
fn a_pool_that_loses_slots_to_cancelled_acquires_is_caught() {
    assert!(verdict::<Leaky>().lost > 0);
}

#[test]
fn a_pool_that_forgets_a_waiter_is_caught() {
    let verdict = verdict::<Deaf>();

    assert!(verdict.stuck > 0);
    assert_eq!(verdict.lost, 0);
}

#[test]
fn a_pool_that_opens_more_than_its_size_is_caught() {
    let verdict = verdict::<Boundless>();

    assert!(verdict.over > 0);
    assert_eq!(verdict.lost, 0);
}

/// A permit goes back with the task that held or awaited it.
#[derive(Clone, Debug)]
struct Sound(Arc<Semaphore>, Backend);

impl Peer for Sound {
    const NAME: &'static str = "sound";
    const KIND: Kind = Kind::Pool;
    /// Drops the thing before its permit.
    type Guard<'a> = (Thing, OwnedSemaphorePermit);

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Semaphore::new(setup.size)), setup.backend.clone())
    }

    async fn acquire(&self) -> Self::Guard<'_> {
        let permit = Arc::clone(&self.0).acquire_owned().await.unwrap();
        yield_now().await;
        (self.1.connect().await, permit)
    }
}

/// Takes its permit for good before it waits, and gives it back only with the guard.
#[derive(Clone, Debug)]
struct Leaky(Arc<Semaphore>, Backend);

#[derive(Debug)]
struct Leak(
    Arc<Semaphore>,
    #[expect(dead_code, reason = "it is counted")] Thing,
);

impl Drop for Leak {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

impl Peer for Leaky {
    const NAME: &'static str = "leaky";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Leak;

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Semaphore::new(setup.size)), setup.backend.clone())
    }

    async fn acquire(&self) -> Leak {
        self.0.acquire().await.unwrap().forget();
        yield_now().await;
        Leak(Arc::clone(&self.0), self.1.connect().await)
    }
}

/// Opens a resource for every caller.
#[derive(Clone, Debug)]
struct Boundless(Backend);

impl Peer for Boundless {
    const NAME: &'static str = "boundless";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Thing;

    async fn build(setup: &Setup) -> Self {
        Self(setup.backend.clone())
    }

    async fn acquire(&self) -> Thing {
        self.0.connect().await
    }
}

/// Never wakes a waiter that found it empty.
#[derive(Clone, Debug)]
struct Deaf(Arc<Semaphore>);

impl Peer for Deaf {
    const NAME: &'static str = "deaf";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = OwnedSemaphorePermit;

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Semaphore::new(setup.size)))
    }

    async fn acquire(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.0).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => pending().await,
        }
    }
}
