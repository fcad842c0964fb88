//! What a trace says about its callers.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn visit(arrival: u32, waited: u32, outcome: Outcome, site: usize) -> Visit {
    Visit {
        arrival: arrival * MS,
        waited: waited * MS,
        outcome,
        site,
        lane: 0,
    }
}

fn held(millis: u32) -> Outcome {
    Outcome::Returned { held: millis * MS }
}

fn load(visits: Vec<Visit>) -> Load {
    let mut recorded = Recorded {
        visits,
        sites: ["unknown", "a.rs:1", "b.rs:2"].map(str::to_owned).into(),
        ..Recorded::default()
    };
    recorded.config.max_size = 2;
    Load::new(&recorded)
}

#[test]
fn calls_are_in_the_order_of_their_arrival() {
    let load = load(vec![visit(5, 0, held(1), 1), visit(2, 0, held(9), 1)]);

    let arrivals: Vec<_> = load.calls.iter().map(|call| call.arrival).collect();
    assert_eq!(arrivals, [2 * MS, 5 * MS]);
}

#[test]
fn a_call_that_timed_out_holds_as_long_as_another_of_its_line() {
    let load = load(vec![
        visit(0, 0, held(500), 1),
        visit(1, 0, held(3), 2),
        visit(2, 40, Outcome::TimedOut, 2),
    ]);

    let guess = load.calls[2];
    assert!(guess.is_guess);
    assert_eq!(
        (guess.hold, guess.patience, guess.among),
        (3 * MS, 40 * MS, 2)
    );
}

#[test]
fn a_lease_that_was_still_out_is_held_to_the_end() {
    let load = load(vec![
        visit(0, 0, Outcome::Kept, 1),
        visit(90, 10, held(0), 1),
    ]);

    assert_eq!(load.calls[0].hold, 100 * MS);
}

#[test]
fn a_call_with_more_patience_than_the_pool_keeps_it() {
    let load = load(vec![visit(0, 9000, held(1), 1), visit(1, 0, held(1), 1)]);

    let patience: Vec<_> = load.calls.iter().map(|call| call.patience).collect();
    assert_eq!(
        patience,
        [9000 * MS, 5000 * MS],
        "5 s is the default of a pool"
    );
}

#[test]
fn leases_are_counted_at_the_moment_of_each_grant() {
    let load = load(vec![
        visit(0, 0, held(10), 1),
        visit(1, 0, held(4), 1),
        visit(2, 3, held(1), 1),
        visit(20, 0, held(0), 1),
    ]);

    let among: Vec<_> = load.calls.iter().map(|call| call.among).collect();
    assert_eq!(
        among,
        [1, 2, 2, 1],
        "the third was granted when the second came back"
    );
}
