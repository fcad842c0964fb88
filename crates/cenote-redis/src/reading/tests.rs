//! Each command and pipeline has its route, and leaves behind what it says.

use redis::{Cmd, cmd, pipe};

use super::{Dirt, Reading, Route};

const HOME: i64 = 2;

fn command(text: &str) -> Cmd {
    let mut words = text.split(' ');
    let mut command = cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command
}

fn route(text: &str) -> Route {
    Reading::of_command(&command(text), HOME).map_or(Route::Lane, |reading| reading.route())
}

fn route_of_all(texts: &[&str], atomic: bool) -> Route {
    let mut pipeline = pipe();
    for text in texts {
        pipeline.add_command(command(text));
    }
    if atomic {
        pipeline.atomic();
    }
    Reading::of_pipeline(&pipeline, HOME).map_or(Route::Lane, |reading| reading.route())
}

#[test]
fn a_plain_command_runs_on_a_lane() {
    assert_eq!(route("GET k"), Route::Lane);
    assert_eq!(route_of_all(&["GET k", "SET k v"], false), Route::Lane);
}

#[test]
fn a_transaction_in_one_go_runs_on_a_lane() {
    assert_eq!(route_of_all(&["GET k", "SET k v"], true), Route::Lane);
    assert_eq!(
        route_of_all(&["BLPOP k 0"], true),
        Route::Lane,
        "it does not block"
    );
}

#[test]
fn a_blocking_command_runs_on_a_lease() {
    assert_eq!(route("BLPOP k 0"), Route::Lease);
    assert_eq!(route_of_all(&["GET k", "BLPOP k 0"], false), Route::Lease);
}

#[test]
fn a_pipeline_that_undoes_its_changes_runs_on_a_lease() {
    assert_eq!(
        route_of_all(&["SELECT 1", "GET k", "SELECT 2"], false),
        Route::Lease
    );
    assert_eq!(
        route_of_all(&["MULTI", "SET k v", "EXEC"], false),
        Route::Lease
    );
    assert_eq!(route_of_all(&["WATCH k", "UNWATCH"], false), Route::Lease);
}

#[test]
fn a_command_that_others_must_follow_needs_a_connection_that_stays() {
    for text in [
        "WATCH k",
        "MULTI",
        "SELECT 1",
        "CLIENT SETNAME x",
        "AUTH x",
        "WAIT 1 0",
    ] {
        assert_eq!(route(text), Route::Stay, "{text}");
    }
    assert_eq!(route_of_all(&["SELECT 1", "GET k"], false), Route::Stay);
    assert_eq!(route_of_all(&["SELECT 1", "GET k"], true), Route::Stay);
}

#[test]
fn a_command_that_only_ends_something_runs_on_a_lane() {
    assert_eq!(route("UNWATCH"), Route::Lane);
    assert_eq!(route("SELECT 2"), Route::Lane, "it is there already");
}

#[test]
fn dirt_goes_with_the_command_that_ends_it() {
    let after = |dirt, text| {
        let reading = Reading::of_command(&command(text), HOME).unwrap();
        (reading.dirt_at_worst(dirt), reading.dirt_after(dirt))
    };
    let (_, watched) = after(Dirt::NONE, "WATCH k");
    let (_, both) = after(watched, "MULTI");

    assert_eq!(after(watched, "UNWATCH"), (watched, Dirt::NONE));
    assert_eq!(after(both, "UNWATCH"), (both, both), "it is only queued");
    assert_eq!(after(both, "EXEC"), (both, Dirt::NONE));
    assert_eq!(after(both, "DISCARD"), (both, Dirt::NONE));
}

#[test]
fn an_atomic_pipeline_ends_a_watch() {
    let watch = Reading::of_command(&command("WATCH k"), HOME).unwrap();
    let mut pipeline = pipe();
    pipeline.atomic().add_command(command("SET k v"));
    let reading = Reading::of_pipeline(&pipeline, HOME).unwrap();
    let watched = watch.dirt_after(Dirt::NONE);

    assert_eq!(reading.dirt_after(watched), Dirt::NONE);
    assert_ne!(reading.dirt_at_worst(Dirt::NONE), Dirt::NONE);
}

#[test]
fn channels_are_subscribed_one_by_one_on_a_lease() {
    let refusal = |text, messages| {
        let reading = Reading::of_command(&command(text), HOME).unwrap();
        reading.refusal(messages)
    };
    assert_eq!(refusal("SUBSCRIBE a", true), None);
    assert!(
        refusal("SUBSCRIBE a", false)
            .unwrap()
            .contains("protocol=resp3")
    );
    assert!(
        refusal("SUBSCRIBE a b", true)
            .unwrap()
            .contains("one channel")
    );
    assert!(matches!(route("SUBSCRIBE a"), Route::Nowhere(fix) if fix.contains("lease")));
    assert!(matches!(route("MONITOR"), Route::Nowhere(fix) if fix.contains("monitor")));
}
