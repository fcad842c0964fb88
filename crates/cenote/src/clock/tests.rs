//! The clock of a pool against the exact one. With `test-util` pools read only the latter.

use std::time::Duration;

use super::*;

/// The kernel's coarse clock ticks at least a hundred times a second.
const LAG: Duration = Duration::from_millis(10);

/// What a clock shows, and the exact time just before and just after it was read.
fn read(show: impl Fn() -> Moment) -> (Moment, Moment, Moment) {
    (rt::now(), show(), rt::now())
}

fn is_exact(show: impl Fn() -> Moment) -> bool {
    (0..1000).all(|_| {
        let (before, shown, after) = read(&show);
        before <= shown && shown <= after
    })
}

#[test]
fn the_exact_reading_is_the_time() {
    for observed in [true, false] {
        let clock = Clock::new(observed);
        assert!(is_exact(|| clock.exact_now()));
    }
}

#[test]
fn where_an_observer_is_told_how_long_things_take_every_reading_is_exact() {
    let clock = Clock::new(true);

    assert!(is_exact(|| clock.coarse_now()));
}

#[test]
fn the_coarse_reading_is_never_ahead_and_at_most_20_ms_behind() {
    let clock = Clock::new(false);
    // A thread that is put off between two readings sees any distance. The best of many tries
    // counts.
    let tries = (0..100).map(|_| {
        let (before, shown, after) = read(|| clock.coarse_now());
        assert!(shown <= after, "{shown:?} is ahead of {after:?}");
        before.saturating_duration_since(shown)
    });

    let behind = tries.min();

    assert!(behind.is_some_and(|behind| behind <= 2 * LAG), "{behind:?}");
}

#[test]
fn the_coarse_reading_goes_on() {
    let clock = Clock::new(false);
    let first = clock.coarse_now();
    let enough = rt::now() + Duration::from_secs(10);

    while clock.coarse_now() == first && rt::now() < enough {
        std::hint::spin_loop();
    }

    assert!(clock.coarse_now() > first);
}

#[test]
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(feature = "test-util")
))]
fn where_the_kernel_has_a_coarse_clock_it_is_read() {
    let clock = Clock::new(false);

    assert!(!clock.notice_pause(), "it is real time");

    assert!(!is_exact(|| clock.coarse_now()));
}

#[test]
fn a_clock_that_notices_a_pause_reads_the_paused_time() {
    let clock = Clock::new(false);
    assert!(!clock.is_paused());

    rt::with_paused_time(|| {
        assert!(clock.notice_pause(), "that is news");

        assert_eq!(clock.coarse_now(), rt::now());
        assert_eq!(clock.exact_now(), rt::now());
        assert!(!clock.notice_pause(), "and now it is not");
    });
    assert!(clock.is_paused(), "once paused, it trusts no other clock");
    assert!(is_exact(|| clock.coarse_now()));
}

#[test]
fn a_clock_that_is_made_where_time_is_paused_knows() {
    rt::with_paused_time(|| assert!(Clock::new(false).is_paused()));
}
