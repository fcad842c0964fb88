//! The places are divided.

use super::*;

#[test]
fn instances_share_the_places_that_are_left() {
    let places = Places {
        all: 100,
        reserved: 3,
        others: 7,
    };

    assert_eq!((places.left(), places.for_each(4)), (90, 22));
}
