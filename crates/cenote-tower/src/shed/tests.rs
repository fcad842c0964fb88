//! The estimate, with the time turned by hand.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A line that is looked at every tenth of a second: so many wait, so many come back in between.
fn after(looks: u32, waiting: usize, returns: u64) -> Line {
    let (mut line, start) = (Line::default(), now());
    for look in 0..looks {
        line.hear(
            start + SECOND / 10 * look,
            waiting,
            u64::from(look) * returns,
        );
    }
    line
}

#[test]
fn nobody_waits_so_nobody_would() {
    let mut line = after(50, 100, 1);
    assert!(line.wait > SECOND);

    line.hear(now(), 0, 50);

    assert_eq!(line.wait, Duration::ZERO);
}

#[test]
fn the_wait_is_the_length_of_the_line_at_the_pace_of_the_returns() {
    // Ten come back each second, and 29 stand before the newcomer.
    let line = after(60, 29, 1);

    assert!(
        (line.wait.as_secs_f64() - 3.0).abs() < 0.01,
        "{:?}",
        line.wait
    );
}

#[test]
fn a_line_that_has_just_begun_refuses_nobody() {
    let line = after(1, 1000, 0);

    assert_eq!(line.wait, Duration::ZERO);
}

#[test]
fn where_nothing_comes_back_the_wait_grows_with_the_time() {
    let (early, late) = (after(10, 4, 0), after(20, 4, 0));

    assert!(early.wait >= SECOND * 4 && late.wait > early.wait);
}

#[test]
fn the_pace_of_long_ago_is_forgotten() {
    let (mut line, start) = (Line::default(), now());
    for look in 0..100 {
        line.hear(start + SECOND / 10 * look, 10, 0);
    }
    // It flows again: a hundred each second.
    for look in 100..140 {
        line.hear(start + SECOND / 10 * look, 10, u64::from(look - 100) * 10);
    }

    assert!(line.wait < SECOND / 4, "{:?}", line.wait);
}

#[test]
fn the_pool_is_looked_at_once_in_a_while() {
    let (mut line, start) = (Line::default(), now());

    assert!(line.is_due(start));
    assert!(!line.is_due(start + LOOK_EVERY / 2));
    assert!(line.is_due(start + LOOK_EVERY));
}
