//! The clock of a pool against the exact one. In debug builds pools read only the latter, so it is tried here.

use super::*;

/// What it shows, and the exact time just before and just after it was read.
fn read(clock: &Clock) -> (Moment, Moment, Moment) {
    (rt::now(), clock.now(), rt::now())
}

fn is_exact(clock: &Clock) -> bool {
    (0..1000).all(|_| {
        let (before, shown, after) = read(clock);
        before <= shown && shown <= after
    })
}

#[test]
fn an_exact_clock_shows_the_time() {
    assert!(is_exact(&Clock::new(true)));
}

#[test]
fn a_coarse_clock_is_never_ahead_and_at_most_20_ms_behind() {
    let clock = Clock::new(false);
    // A thread that is put off between two readings sees any distance. The best of many tries counts.
    let tries = (0..100).map(|_| {
        let (before, shown, after) = read(&clock);
        assert!(shown <= after, "{shown:?} is ahead of {after:?}");
        before.saturating_duration_since(shown)
    });

    let behind = tries.min();

    assert!(behind.is_some_and(|behind| behind <= 2 * LAG), "{behind:?}");
}

#[test]
fn a_coarse_clock_goes_on() {
    let clock = Clock::new(false);
    let first = clock.now();
    let enough = rt::now() + Duration::from_secs(10);

    while clock.now() == first && rt::now() < enough {
        std::hint::spin_loop();
    }

    assert!(clock.now() > first);
}

#[test]
#[cfg(any(target_os = "linux", target_os = "android"))]
fn where_the_kernel_has_a_coarse_clock_it_is_read() {
    let clock = Clock::new(false);

    assert!(!clock.doubt());

    assert!(!is_exact(&clock), "it is real time, so there is no doubt");
}

#[test]
fn where_time_is_paused_doubt_makes_it_exact() {
    let clock = Clock::new(false);

    rt::with_paused_time(|| {
        assert!(clock.doubt(), "that is news");

        assert_eq!(clock.now(), rt::now());
        assert!(!clock.doubt(), "and now it is not");
    });
    assert!(is_exact(&clock), "once in doubt, always in doubt");
}

#[test]
fn a_clock_that_is_made_where_time_is_paused_knows() {
    rt::with_paused_time(|| assert!(Clock::new(false).is_turned()));
}

#[test]
fn a_limit_never_ends_early() {
    for exact in [true, false] {
        let clock = Clock::new(exact);
        for limit in [Duration::ZERO, SHORT / 1000, SHORT, 30 * SHORT] {
            let began = rt::truly_now();
            let end = clock.end_of(limit, clock.now());

            let full = end.saturating_duration_since(began);
            assert!(full >= limit, "{limit:?} ended after {full:?}");
            assert_eq!(clock.past(end, end - LAG - LAG - LAG), None);
        }
        assert_eq!(clock.end_of(Duration::MAX, clock.now()), Moment::NEVER);
    }
}

#[test]
fn what_is_over_is_past_though_the_coarse_clock_does_not_know_yet() {
    let clock = Clock::new(false);
    let shown = rt::now() - LAG;

    let over = rt::truly_now();
    assert!(clock.past(over, shown).is_some_and(|now| now >= over));
    assert_eq!(clock.past(rt::now() + SHORT, shown), None);
}
