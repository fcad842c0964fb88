//! The patterns, on a pool that records the returned resources.

use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::{Pattern, Traveller, at_once, hold};
use crate::harness::peer::{Kind, Peer, Setup};
use crate::harness::scenarios::growth::Stretch;

/// Resources are numbered in the order in which they are taken.
#[derive(Clone, Debug, Default)]
struct Noting(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    taken: usize,
    returned: Vec<usize>,
}

#[derive(Debug)]
struct Noted(Noting, usize);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().returned.push(self.1);
    }
}

impl Peer for Noting {
    const NAME: &'static str = "noting";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Noted;

    async fn build(_: &Setup) -> Self {
        Self::default()
    }

    async fn acquire(&self) -> Noted {
        let mut notes = self.0.lock().unwrap();
        notes.taken += 1;
        Noted(self.clone(), notes.taken)
    }
}

/// Returns the resources that came back in so many trips, with three out.
async fn returned(pattern: Pattern, trips: usize) -> Vec<usize> {
    let pool = Noting::default();
    let mut traveller = Traveller {
        pool: &pool,
        held: hold(&pool, 3).await,
        oldest: 0,
        random: Rng::with_seed(1),
    };
    traveller.travel(pattern, trips).await;
    assert_eq!(traveller.held.len(), 3);
    let notes = pool.0.lock().unwrap();
    notes.returned.clone()
}

#[tokio::test]
async fn same_returns_the_resource_that_it_has_just_taken() {
    assert_eq!(returned(Pattern::Same, 4).await, [4, 5, 6, 7]);
}

#[tokio::test]
async fn rotate_returns_the_oldest_that_is_out() {
    assert_eq!(returned(Pattern::Rotate, 5).await, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn random_returns_one_that_was_out_before() {
    let returned = returned(Pattern::Random, 50).await;

    let came_at = returned.iter().enumerate();
    for (trip, number) in came_at {
        assert!(*number < trip + 4, "the {trip}th trip returned its own");
    }
    assert!(!returned.is_sorted(), "{returned:?}");
}

#[test]
fn tasks_at_once_take_half_as_long_for_each_trip() {
    let each = Stretch {
        name: "same",
        nanos: 40.0,
        noise: 0.0,
    };
    let noisy = Stretch { noise: 0.3, ..each };

    let both = at_once(&[vec![each], vec![noisy]]);

    assert_eq!((both[0].nanos, both[0].noise), (20.0, 0.3));
}
