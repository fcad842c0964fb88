//! Tests of the shelf.

use std::cell::Cell;

use super::*;

struct Rig {
    shelf: Shelf<u32>,
    taken: Cell<u32>,
    begun: Instant,
}

impl Rig {
    #[expect(
        clippy::disallowed_methods,
        reason = "the ban guards the pool; any moment will do"
    )]
    fn new() -> Self {
        Self {
            shelf: Shelf::new(),
            taken: Cell::new(0),
            begun: Instant::now(),
        }
    }

    /// Returns which snapshot the callback gets.
    fn ask(&self, callback: usize, millis: u64) -> u32 {
        let now = self.begun + Duration::from_millis(millis);
        *self.shelf.get(callback, now, || {
            self.taken.set(self.taken.get() + 1);
            self.taken.get()
        })
    }
}

#[test]
fn the_callbacks_of_one_collection_share_a_snapshot() {
    let rig = Rig::new();

    for collection in 1..4 {
        for callback in [0, 5, 63] {
            assert_eq!(rig.ask(callback, 0), collection);
        }
    }
}

#[test]
fn a_collection_without_the_first_callback_gets_a_snapshot_of_its_own() {
    let rig = Rig::new();

    assert_eq!([rig.ask(0, 0), rig.ask(1, 0), rig.ask(2, 0)], [1, 1, 1]);
    assert_eq!([rig.ask(1, 0), rig.ask(2, 0)], [2, 2]);
    assert_eq!([rig.ask(1, 0), rig.ask(2, 0)], [3, 3]);
}

#[test]
fn an_old_snapshot_is_not_used_again() {
    let rig = Rig::new();

    assert_eq!(rig.ask(0, 0), 1);
    assert_eq!(rig.ask(1, 199), 1);
    assert_eq!(rig.ask(2, 200), 2);
}
