//! Tests of the benchmark: its calculations, a short play, and the results in the tree.

mod clock;
mod crew;
mod event;
mod figures;
mod member;
mod observer;
mod place;
mod play;
mod plot;
mod pool;
mod results;
mod system;

use std::fs;
use std::path::Path;
use std::time::Duration;

use event::{Event, Outcome};
use figures::{Figures, reached};
use play::{Stretch, What};
use results::{Results, between_marks};
use system::{CAPACITY, PROCESSES, System};

/// The stretch of most tests: 100 requests per second, for ten seconds from the second 5 on.
const STRETCH: Stretch = Stretch {
    what: What::Move,
    busy: 0,
    rate: 100.0,
    from: 5.0,
    to: 15.0,
};

/// Requests of the whole stretch. Those that begin at a time that `is_served` refuses are shed.
fn requests(is_served: impl Fn(f64) -> bool) -> Vec<Event> {
    let at = |nth: u32| STRETCH.from + f64::from(nth) / STRETCH.rate;
    let requests = (0..1000).map(at).map(|at| Event {
        at,
        outcome: if is_served(at - STRETCH.from) {
            Outcome::Served(0.02)
        } else {
            Outcome::Shed
        },
    });
    requests.collect()
}

#[test]
fn a_process_has_what_it_needs_from_the_first_request_that_is_served() {
    let after = |events: Vec<Event>| reached(&events, &STRETCH);

    assert_eq!(after(requests(|_| true)), Some(0.0));
    let late = after(requests(|at| at >= 2.0)).unwrap();
    assert!((late - 2.0).abs() < 0.001, "{late}");
    // The first requests had room in the queue, and then it was full.
    let queued = after(requests(|at| !(0.1..2.0).contains(&at))).unwrap();
    assert!((queued - 2.0).abs() < 0.001, "{queued}");
}

#[test]
fn a_process_that_is_served_in_part_never_has_what_it_needs() {
    let third = requests(|at| ((at * 100.0).round() as u32).is_multiple_of(3));
    let too_late = requests(|at| at >= 9.8);

    assert_eq!(reached(&third, &STRETCH), None);
    assert_eq!(reached(&too_late, &STRETCH), None);
    assert_eq!(reached(&[], &STRETCH), None);
}

#[test]
fn events_are_told_from_process_to_process() {
    let outcomes = [Outcome::Served(0.25), Outcome::Failed, Outcome::Shed];
    for outcome in outcomes {
        let event = Event { at: 12.5, outcome };

        assert_eq!(Event::from_line(&event.to_line()), Some(event));
    }
    assert_eq!(Event::from_line("running 1 test"), None);
}

#[test]
fn static_shares_use_the_whole_capacity() {
    let shares = (0..PROCESSES).map(|process| System::SqlxShare.max_size(process));

    assert_eq!(shares.sum::<u32>(), CAPACITY);
}

#[test]
fn the_readme_shows_the_results_of_the_tree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let (json, readme, plot) = (
        read("fleet/results.json"),
        read("README.md"),
        read("fleet/plot.svg"),
    );

    let results: Results = serde_json::from_str(&json).unwrap();

    assert_eq!(results.systems.len(), System::ALL.len());
    assert_eq!(results.to_json().unwrap(), json);
    assert!(between_marks(&readme, &results.to_markdown()) == Some(readme));
    assert!(plot::svg(&results) == plot);
}

#[test]
fn a_fleet_serves_a_load_that_moves_between_processes() {
    let story = play::play(System::Cenote, Duration::from_millis(300)).unwrap();

    let figures = Figures::of(&story);
    assert!(figures.seen.counts > 0 && figures.seen.most > 0);
    assert!(figures.seen.most <= CAPACITY, "{figures:?}");
    assert_eq!((figures.moves.len(), figures.kills.len()), (3, 3));
    for (process, done) in figures.done.iter().enumerate() {
        assert!(done.iter().sum::<f64>() > 0.0, "{process}: {figures:?}");
    }
    let mut results = Results::new(String::new(), String::new(), String::new(), 0.3);
    results.systems.push(figures);
    let json = results.to_json().unwrap();
    assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
}

/// A process that was started by another is one of the six.
#[test]
fn a_member_is_a_process_of_its_own() {
    match std::env::var(member::VARIABLE) {
        Ok(orders) => member::run(&orders).unwrap(),
        Err(_) => assert!(member::run("0 postgres://nowhere no such system").is_err()),
    }
}
