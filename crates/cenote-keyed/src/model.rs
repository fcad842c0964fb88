//! Models of the budget where threads meet: returns, waits, looks and withdrawals under shuttle, in
//! many orders. `cargo xtask model` runs them.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use shuttle::thread;

use crate::lock::Lock;
use crate::room::{Owner, Place, Room, Share};

/// How many orders of each kind are played.
const ROUNDS: usize = 1_000;

/// How many switches between threads a bug needs at the wrong moments.
const DEPTH: usize = 3;

fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), ROUNDS);
    shuttle::check_pct(model, ROUNDS, DEPTH);
}

/// A key whose pool is only its idle resources.
struct Key {
    share: Arc<Share>,
    shelf: Lock<Vec<Place>>,
}

impl Owner for Key {
    fn longest_idle(&self) -> Option<u64> {
        (!self.shelf.lock().is_empty()).then_some(0)
    }

    fn evict(&self) -> bool {
        let place = self.shelf.lock().pop();
        place.is_some()
    }

    fn waiting(&self) -> usize {
        1
    }

    fn label(&self) -> String {
        String::new()
    }
}

impl Key {
    fn new(room: &Arc<Room>) -> Arc<Self> {
        let key = Arc::new(Self {
            share: room.share(),
            shelf: Lock::new(Vec::new()),
        });
        let owner: Weak<Self> = Arc::downgrade(&key);
        key.share.set_owner(owner);
        key
    }

    /// Closes the idle resources.
    fn clear(&self) {
        let places = std::mem::take(&mut *self.shelf.lock());
        drop(places);
    }

    /// As the pool of a key does: a resource that is not given up is idle a moment later.
    fn give_back(&self, mut place: Place) {
        if !place.must_give_up() {
            thread::yield_now();
            self.shelf.lock().push(place);
        }
    }

    /// Waits for a place or for an idle resource of its own, and looks again after each pause.
    fn wait(&self) -> Place {
        let mut ticket = pin!(self.share.queue(usize::MAX).expect("any number may wait"));
        loop {
            let own = self.shelf.lock().pop();
            if let Some(place) = own {
                return place;
            }
            self.share.look();
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(place) = ticket.as_mut().poll(&mut context) {
                return place.expect("no wait is called off here");
            }
            thread::yield_now();
        }
    }
}

fn assert_all_free(room: &Room) {
    room.read(|budget| {
        assert_eq!(
            (budget.held(), budget.leaving(), budget.tickets()),
            (0, 0, 0)
        );
    });
}

#[test]
fn a_wait_that_meets_a_return_gets_its_place() {
    explore(|| {
        let room = Room::new(1);
        let (first, second) = (Key::new(&room), Key::new(&room));
        let place = first.share.take().expect("it is free");
        let returning = {
            let first = Arc::clone(&first);
            thread::spawn(move || first.give_back(place))
        };

        drop(second.wait());

        returning.join().expect("it does not panic");
        first.clear();
        assert_all_free(&room);
    });
}

#[test]
fn two_waits_that_meet_two_returns_get_a_place_each() {
    explore(|| {
        let room = Room::new(2);
        let rich = Key::new(&room);
        let places = [rich.share.take(), rich.share.take()].map(|place| place.expect("free"));
        let mut threads: Vec<_> = places
            .into_iter()
            .map(|place| {
                let rich = Arc::clone(&rich);
                thread::spawn(move || rich.give_back(place))
            })
            .collect();
        for _ in 0..2 {
            let poor = Key::new(&room);
            threads.push(thread::spawn(move || drop(poor.wait())));
        }

        for thread in threads {
            thread.join().expect("it does not panic");
        }

        rich.clear();
        assert_all_free(&room);
    });
}

#[test]
fn a_ticket_that_is_dropped_while_its_place_comes_loses_none() {
    explore(|| {
        let room = Room::new(1);
        let (first, second, third) = (Key::new(&room), Key::new(&room), Key::new(&room));
        let place = first.share.take().expect("it is free");
        let gives_up = second.share.queue(1).expect("no other waits");
        let dropping = thread::spawn(move || drop(gives_up));
        let returning = thread::spawn(move || drop(place));

        drop(third.wait());

        dropping.join().expect("it does not panic");
        returning.join().expect("it does not panic");
        assert_all_free(&room);
    });
}

#[test]
fn two_keys_that_take_the_place_from_each_other_both_get_it() {
    explore(|| {
        let room = Room::new(1);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let key = Key::new(&room);
                thread::spawn(move || {
                    for _ in 0..2 {
                        let place = key.wait();
                        key.give_back(place);
                    }
                    key
                })
            })
            .collect();

        for thread in threads {
            let key = thread.join().expect("it does not panic");
            key.clear();
        }
        assert_all_free(&room);
    });
}
