//! The list is bounded, and tells events apart.

use std::borrow::Cow;

use super::{Detail, Events, MOST, What};
use crate::view::Level;

fn what(text: &str) -> What {
    What {
        kind: "refused",
        level: Level::Trouble,
        site: None,
        text: Cow::Owned(text.to_owned()),
    }
}

#[test]
fn a_million_events_leave_a_short_list() {
    let mut events = Events::default();
    for nth in 0..1_000_000_u64 {
        let text = (nth % 20).to_string();
        events.add(nth, what(&text), Detail::default());
    }

    assert_eq!(events.since(0).len(), MOST);
    assert!(events.entries.capacity() <= 2 * MOST);
}

#[test]
fn a_storm_of_some_kinds_leaves_older_events_in_place() {
    let mut events = Events::default();
    events.add(1, what("old"), Detail::default());
    for nth in 0..10_000 {
        let text = ["a", "b", "c"][nth % 3];
        events.add(2, what(text), Detail::default());
    }

    let seen = events.since(0);
    let counts: Vec<_> = seen.iter().map(|seen| (&*seen.text, seen.count)).collect();
    assert_eq!(
        counts,
        [("old", 1), ("a", 3_334), ("b", 3_333), ("c", 3_333)]
    );
}

#[test]
fn a_reader_gets_only_what_changed() {
    let mut events = Events::default();
    events.add(1, what("a"), Detail::default());
    events.add(1, what("b"), Detail::default());
    let seen = events.version();
    assert!(events.since(seen).is_empty());

    let resource = Some(7);
    events.add(
        2,
        what("a"),
        Detail {
            resource,
            time: None,
        },
    );

    let changed = events.since(seen);
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (changed[0].id, changed[0].count, changed[0].resource),
        (1, 2, resource)
    );
}
