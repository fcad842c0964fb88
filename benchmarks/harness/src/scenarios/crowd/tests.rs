//! The fairness figures, on a pool that keeps a line and on one that does not.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

use super::round;
use crate::peer::{Kind, Peer, Setup};
use crate::runtime::Runtime;

fn figure<P: Peer>(name: &str) -> f64 {
    let figures = round::<P>(Runtime::CurrentThread, Duration::from_millis(300));
    figures.iter().find(|figure| figure.0 == name).unwrap().1
}

#[test]
fn a_pool_that_keeps_a_line_starves_nobody() {
    assert_eq!(figure::<Fair>("starved"), 0.0);
    assert!(figure::<Fair>("max:min") < 2.0);
}

#[test]
fn a_pool_that_serves_whoever_comes_first_is_seen_to_be_unfair() {
    assert!(figure::<Unfair>("max:min") > 2.0);
    assert!(figure::<Unfair>("starved") > 0.0);
}

#[derive(Clone, Debug)]
struct Fair(Arc<Semaphore>);

impl Peer for Fair {
    const NAME: &'static str = "fair";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = OwnedSemaphorePermit;

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Semaphore::new(setup.size)))
    }

    async fn acquire(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.0).acquire_owned().await.unwrap()
    }
}

/// Whoever finds one free takes it; who gave back is the first to look.
#[derive(Clone, Debug)]
struct Unfair(Arc<Semaphore>);

impl Peer for Unfair {
    const NAME: &'static str = "unfair";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = OwnedSemaphorePermit;

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Semaphore::new(setup.size)))
    }

    async fn acquire(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() {
                return permit;
            }
            yield_now().await;
        }
    }
}
