//! Tests of the advice.

use std::panic::Location;

use super::*;
use crate::status::Used;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn facts(max_size: usize) -> Facts {
    Facts {
        status: Status {
            max_size,
            ..Status::default()
        },
        age: MINUTE,
        holders: Vec::new(),
        nested: false,
        suspended: false,
        breaker: BreakerState::Active,
        breaker_for: MINUTE,
        failing_for: None,
        opening_for: None,
        leak_after: Some(30 * SECOND),
    }
}

/// A pool whose ten resources are all held at one place.
fn exhausted(longest: Duration) -> Facts {
    let mut facts = facts(10);
    facts.status.in_use = 10;
    facts.holders.push(HolderGroup {
        site: Location::caller(),
        count: 10,
        longest,
        used: None,
        label: None,
        claimed: true,
    });
    facts
}

fn said(facts: &Facts, failure: Option<&str>) -> Vec<(AdviceKind, String)> {
    let all = present(facts, failure).into_iter();
    all.map(|advice| (advice.kind, advice.text)).collect()
}

/// What was done in a minute.
fn minute(load: f64, waited: u64) -> Status {
    Status {
        max_size: 10,
        acquired: 1000,
        released: 1000,
        waited,
        wait_time: waited as u32 * SECOND / 10,
        held_time: MINUTE.mul_f64(load),
        ..Status::default()
    }
}

fn on_size(status: &Status) -> (AdviceKind, String) {
    let mut all = Advice::between(&Status::default(), status, MINUTE);
    assert_eq!(all.len(), 1, "{all:?}");
    let advice = all.remove(0);
    (advice.kind, advice.text)
}

#[test]
fn a_pool_with_nothing_wrong_gets_no_advice() {
    assert_eq!(said(&facts(10), None), []);
    assert_eq!(said(&exhausted(SECOND / 2), None), [], "busy is not wrong");
}

#[test]
fn the_line_that_holds_all_is_named_with_its_time() {
    let facts = exhausted(Duration::from_millis(12_400));
    let line = facts.holders[0].site.line();

    let [(kind, text)] = &said(&facts, None)[..] else {
        panic!("one is enough");
    };

    assert_eq!(*kind, AdviceKind::Held);
    let file = file!();
    assert_eq!(
        *text,
        format!("10 of 10 held by {file}:{line} for up to 12.4s: a leak or slow work")
    );
}

#[test]
fn a_meter_tells_a_leak_from_slow_work() {
    let mut facts = exhausted(12 * SECOND);
    let used = |time| {
        Some(Used {
            time,
            what: "in statements",
        })
    };

    facts.holders[0].used = used(11 * SECOND);
    let slow = said(&facts, None)[0].1.clone();
    facts.holders[0].used = used(SECOND / 2);
    let kept = said(&facts, None)[0].1.clone();

    assert!(
        slow.ends_with(": slow work, 11.0s of it in statements"),
        "{slow}"
    );
    let end = ": a leak, or kept without need: only 500.0ms of it in statements";
    assert!(kept.ends_with(end), "{kept}");
}

#[test]
fn a_leak_is_named_while_other_resources_are_left() {
    let mut facts = exhausted(31 * SECOND);
    facts.holders[0].count = 1;
    facts.status.in_use = 1;
    facts.holders[0].label = Some("report".into());

    let text = &said(&facts, None)[0].1;

    assert!(text.starts_with("1 of 10 held by "), "{text}");
    assert!(text.contains(" (report) for up to 31.0s"), "{text}");
    facts.leak_after = None;
    assert_eq!(said(&facts, None), []);
}

#[test]
fn a_grant_that_is_not_taken_is_named() {
    let mut facts = exhausted(2 * SECOND);
    facts.holders[0].claimed = false;

    let (kind, text) = &said(&facts, None)[0];

    assert_eq!(*kind, AdviceKind::NotPolled);
    assert!(text.contains("not taken for 2.0s"), "{text}");
}

#[test]
fn at_most_three_lines_of_code_are_named() {
    let mut facts = exhausted(40 * SECOND);
    let group = facts.holders[0].clone();
    facts.holders.extend(vec![group; 9]);

    assert_eq!(said(&facts, None).len(), SITES);
}

#[test]
fn trouble_comes_with_its_cause() {
    let mut facts = facts(10);
    facts.breaker = BreakerState::Inactive;
    facts.suspended = true;
    facts.failing_for = Some(3 * SECOND);
    facts.opening_for = Some(7 * SECOND);
    facts.status.opening = 2;
    facts.status.close_failed = 1;
    facts.nested = true;

    let all = said(&facts, Some("opening failed: refused"));

    let texts: Vec<_> = all.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "the breaker has been inactive for 60.0s: opening failed: refused",
            "the pool is suspended: call `resume`",
            "no open has succeeded for 3.0s: opening failed: refused",
            "2 opens take 7.0s by now: the backend does not answer",
            "1 of 0 closes failed or hung: see `close_timeout`",
            "every lease was taken by a task that now waits for this pool: take one lease per task \
             and pass it along",
        ]
    );
}

#[test]
fn a_pool_that_could_be_smaller_is_told_by_how_much() {
    let (kind, text) = on_size(&minute(3.2, 5));

    assert_eq!(kind, AdviceKind::Plenty);
    let expected = "offered load 3.2: 10 are plenty, a `max_size` of 9 would serve 99 % without a \
                    wait, by Erlang C";
    assert_eq!(text, expected);
}

#[test]
fn a_pool_that_is_too_small_is_told_the_right_size() {
    let (kind, text) = on_size(&minute(7.0, 300));

    assert_eq!(kind, AdviceKind::TooSmall);
    assert!(
        text.contains("30 % of the acquires waited 100.0ms"),
        "{text}"
    );
    assert!(text.contains("a `max_size` of 15 would"), "{text}");
}

#[test]
fn the_demand_on_a_pool_that_is_always_full_is_not_guessed() {
    let (kind, text) = on_size(&minute(9.9, 900));

    assert_eq!(kind, AdviceKind::TooSmall);
    assert!(text.contains("always full"), "{text}");
    assert!(!text.contains("Erlang"), "{text}");
}

#[test]
fn waits_that_the_load_does_not_explain_are_bursts_or_opens() {
    let mut status = minute(2.0, 200);
    assert_eq!(on_size(&status).0, AdviceKind::Bursts);

    status.opened = 150;
    assert_eq!(on_size(&status).0, AdviceKind::OpensOnDemand);
}

#[test]
fn little_data_gives_no_advice() {
    let mut few = minute(3.2, 0);
    few.released = 99;
    let none = Status::default();

    assert_eq!(Advice::between(&none, &few, MINUTE), []);
    assert_eq!(Advice::between(&none, &minute(3.2, 0), 9 * SECOND), []);
}

#[test]
fn only_the_time_between_two_looks_counts() {
    let (earlier, mut later) = (minute(9.9, 900), minute(9.9, 900));
    later.released += 1000;
    later.acquired += 1000;
    later.held_time += MINUTE.mul_f64(1.0);

    let all = Advice::between(&earlier, &later, MINUTE);

    assert_eq!(all[0].kind, AdviceKind::Plenty);
    assert!(all[0].text.starts_with("offered load 1.0: "), "{}", all[0]);
}

#[test]
fn erlang_c_agrees_with_the_exact_formula() {
    // By the sums of fractions that define the formula.
    for (load, agents) in [
        (0.01, 1),
        (0.1, 2),
        (1.0, 5),
        (5.0, 12),
        (10.0, 19),
        (100.0, 125),
    ] {
        assert_eq!(size::enough(load), agents, "{load} erlangs");
    }
    assert_eq!(size::enough(0.0), 1);
}
