//! The pictures that are kept in the tree are those that the code draws today.

use std::env;
use std::fs;

use crate::names::{read, root, variants};
use crate::{runs, slot};

#[test]
fn the_states_of_a_slot_are_drawn_from_the_list_of_edges() {
    let edges = slot::edges();

    assert!(edges.len() > 20, "{edges:?}");
    assert_current("slot.svg", &slot::draw(&edges));
}

#[test]
fn every_state_of_a_slot_is_in_the_chapter() {
    let chapter = read("guide/08-how-it-works.md");

    for (from, to) in slot::edges() {
        for state in [from, to] {
            assert!(chapter.contains(&format!("| `{state}` |")), "{state}");
        }
    }
    for state in variants("crates/cenote/src/views.rs", "SlotState") {
        let is_named = chapter.contains(&format!("`{state}`"));
        assert!(is_named || state == "Reserved", "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_spike_is_drawn_from_a_run() {
    assert_current("spike.svg", &runs::spike().await);
}

#[tokio::test(start_paused = true)]
async fn the_outage_is_drawn_from_a_run() {
    assert_current("outage.svg", &runs::outage().await);
}

fn assert_current(name: &str, drawn: &str) {
    let path = root("guide/pictures").join(name);
    if env::var_os("CENOTE_DRAW").is_some() {
        fs::write(&path, drawn).expect("the folder of the pictures is there");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "{name} is stale: run CENOTE_DRAW=1 cargo test -p cenote-guide, and look at it"
    );
}
