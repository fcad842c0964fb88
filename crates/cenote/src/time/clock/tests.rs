//! The clock of a pool against tokio's. With `test-util`, pools read only tokio's.

use std::time::Duration;

use super::*;
use crate::time;

/// The kernel updates its coarse clock at least a hundred times a second.
const LAG: Duration = Duration::from_millis(10);

/// Reads a clock. Returns the exact time just before, the reading, and the exact time just after.
fn read(show: impl Fn() -> Moment) -> (Moment, Moment, Moment) {
    (time::now(), show(), time::now())
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
fn every_reading_is_exact_if_there_is_an_observer() {
    let clock = Clock::new(true);

    assert!(is_exact(|| clock.coarse_now()));
}

#[test]
fn the_coarse_reading_is_never_ahead_and_at_most_20_ms_behind() {
    let clock = Clock::new(false);
    // A thread may be suspended between two readings, so the best of many tries counts.
    let tries = (0..100).map(|_| {
        let (before, shown, after) = read(|| clock.coarse_now());
        assert!(shown <= after, "{shown:?} is ahead of {after:?}");
        before.saturating_duration_since(shown)
    });

    let behind = tries.min();

    assert!(behind.is_some_and(|behind| behind <= 2 * LAG), "{behind:?}");
}

#[test]
fn the_coarse_reading_moves_on() {
    let clock = Clock::new(false);
    let first = clock.coarse_now();
    let enough = time::now() + Duration::from_secs(10);

    while clock.coarse_now() == first && time::now() < enough {
        std::hint::spin_loop();
    }

    assert!(clock.coarse_now() > first);
}

#[test]
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(feature = "test-util")
))]
fn the_coarse_clock_of_the_kernel_is_read_where_there_is_one() {
    let clock = Clock::new(false);

    assert!(!clock.notice_pause(), "it is real time");

    assert!(!is_exact(|| clock.coarse_now()));
}

#[test]
fn a_clock_that_notices_a_pause_reads_the_paused_time() {
    let clock = Clock::new(false);
    assert!(!clock.is_paused());

    rt::with_paused_time(|| {
        assert!(clock.notice_pause(), "it was paused since");

        assert_eq!(clock.coarse_now(), time::now());
        assert_eq!(clock.exact_now(), time::now());
        assert!(!clock.notice_pause(), "it knows already");
    });
    assert!(clock.is_paused(), "it reads tokio's clock from then on");
    assert!(is_exact(|| clock.coarse_now()));
}

#[test]
fn a_clock_that_is_made_while_time_is_paused_reads_the_paused_time() {
    rt::with_paused_time(|| assert!(Clock::new(false).is_paused()));
}
