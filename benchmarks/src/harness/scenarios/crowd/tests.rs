//! The fairness figures, on a pool with a queue and on a pool without one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

use super::round;
use crate::harness::peer::{Kind, Peer, Setup};
use crate::harness::runtime::Runtime;

fn figure<P: Peer>(name: &str) -> f64 {
    let figures = round::<P>(Runtime::CurrentThread, Duration::from_millis(300));
    figures.iter().find(|figure| figure.0 == name).unwrap().1
}

#[test]
fn a_pool_with_a_queue_starves_no_task() {
    assert_eq!(figure::<Fair>("starved"), 0.0);
    assert!(figure::<Fair>("max:min") < 2.0);
}

#[test]
fn a_pool_without_a_queue_is_found_unfair() {
    assert!(figure::<Unfair>("max:min") > 2.0);
    assert!(figure::<Unfair>("starved") > 0.0);
}

type Fair = Permits<true>;

/// A caller that has just given back is the first to find a free permit.
type Unfair = Permits<false>;

/// A pool of permits, with or without a queue.
#[derive(Clone, Debug)]
struct Permits<const QUEUED: bool>(Arc<Semaphore>);

impl<const QUEUED: bool> Peer for Permits<QUEUED> {
    const NAME: &'static str = "permits";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = OwnedSemaphorePermit;

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Semaphore::new(setup.size)))
    }

    async fn acquire(&self) -> OwnedSemaphorePermit {
        if QUEUED {
            return Arc::clone(&self.0).acquire_owned().await.unwrap();
        }
        loop {
            if let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() {
                return permit;
            }
            yield_now().await;
        }
    }
}
