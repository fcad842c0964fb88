//! The simulation keeps its promises: many seeds play well, a seed has the same history each time,
//! and every oracle can fail.

use cenote_testkit::sim::{Kind, Lie, Played, play, play_kind, play_lie};

/// Returns the first seed in which an oracle finds this lie.
#[track_caller]
fn first_found(lie: Lie) -> Played {
    (0..200)
        .map(|seed| play_lie(seed, lie))
        .find(|played| played.broken.is_some())
        .unwrap_or_else(|| panic!("{lie:?}: no oracle has noticed"))
}

#[track_caller]
fn assert_found(lie: Lie, oracle: &str) {
    let played = first_found(lie);
    let broken = played.broken.as_deref().unwrap_or_default();
    assert!(broken.starts_with(oracle), "{played}");
}

#[test]
fn every_promise_is_kept_in_every_schedule() {
    for seed in 0..400 {
        play(seed).assert_kept();
    }
}

#[test]
fn a_pool_of_one_thread_keeps_every_promise_in_every_schedule() {
    for seed in 0..400 {
        play_kind(seed, Kind::OneThread).assert_kept();
    }
}

#[test]
fn a_seed_has_the_same_history_each_time() {
    for seed in 1000..1030 {
        for kind in [Kind::Threads, Kind::OneThread] {
            let first = play_kind(seed, kind);
            let second = play_kind(seed, kind);

            assert!(first.story == second.story, "{first}\n{second}");
            assert_eq!(first, second);
        }
    }
}

#[test]
fn two_seeds_have_two_histories() {
    assert_ne!(play(1).story, play(2).story);
}

#[test]
fn a_resource_with_two_holders_is_noticed() {
    assert_found(Lie::Twins, "O2");
}

#[test]
fn one_resource_too_many_is_noticed() {
    assert_found(Lie::Hoarder, "O1");
}

#[test]
fn a_cap_that_is_not_kept_is_noticed() {
    assert_found(Lie::SmallerCap, "O1");
}

#[test]
fn a_lease_that_was_lost_is_noticed() {
    assert_found(Lie::LostLease, "O5");
}

#[test]
fn a_queue_out_of_order_is_noticed() {
    assert_found(Lie::WrongOrder, "O3");
}

#[test]
fn a_missed_deadline_is_noticed() {
    assert_found(Lie::EarlyDeadline, "O4");
}

#[test]
fn a_grant_after_the_deadline_is_noticed() {
    assert_found(Lie::EarlyDue, "O4");
}

#[test]
fn a_waker_that_was_lost_is_noticed() {
    assert_found(Lie::LostWaker, "O9");
}

#[test]
fn a_place_that_was_lost_is_noticed() {
    assert_found(Lie::LostPlace, "O5");
}

#[test]
fn a_recovering_pool_without_a_proof_is_noticed() {
    assert_found(Lie::NoProof, "O");
}

#[test]
fn a_breaker_that_was_never_inactive_is_noticed() {
    assert_found(Lie::NeverInactive, "O6");
}

#[test]
fn a_broken_promise_comes_with_its_story_and_the_way_to_replay_it() {
    let played = first_found(Lie::SmallerCap);

    let text = played.to_string();
    assert!(text.starts_with("   1"), "{text}");
    assert!(text.contains("broken: O1"), "{text}");
    let replay = format!("cargo xtask sim --seed {}", played.seed);
    assert!(text.ends_with(&replay), "{text}");
}
