//! The clock of the trays against the exact one. In debug builds the pools read only the latter, so it is tried here.

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What it shows, and the exact time just before and just after it was read.
fn read(clock: &Clock) -> (Tick, Tick, Tick) {
    let before = clock.tick(rt::now());
    let shown = clock.now();
    (before, shown, clock.tick(rt::now()))
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
    let most = nanoseconds(Duration::from_millis(20));
    // A thread that is put off between two readings sees any distance. The best of many tries counts.
    let tries = (0..100).map(|_| {
        let clock = Clock::new(false);
        let (before, shown, after) = read(&clock);
        assert!(shown <= after, "{} ns ahead", shown - after);
        before.saturating_sub(shown)
    });

    let behind = tries.min();

    assert!(behind.is_some_and(|behind| behind <= most), "{behind:?} ns");
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

    clock.doubt();

    assert!(!is_exact(&clock), "it is real time, so there is no doubt");
}

#[test]
fn where_time_is_paused_doubt_makes_it_exact() {
    let clock = Clock::new(false);

    rt::with_paused_time(|| {
        clock.doubt();

        let now = rt::now();
        assert_eq!(clock.now(), clock.tick(now));
        assert_eq!(clock.instant(clock.now()), now);
    });
    assert!(is_exact(&clock), "once in doubt, always in doubt");
}

#[test]
fn a_moment_becomes_a_tick_and_the_same_moment_again() {
    let clock = Clock::new(true);
    let now = rt::now();

    for at in [Some(now), Some(now + DAY), now.checked_sub(DAY)]
        .into_iter()
        .flatten()
    {
        assert_eq!(clock.instant(clock.tick(at)), at);
    }
    let later = Duration::from_nanos(7);
    assert_eq!(clock.tick(now + later), clock.tick(now) + 7);
}

#[test]
fn a_moment_before_zero_is_zero() {
    let clock = Clock::new(true);

    assert_eq!(clock.tick(clock.zero - Duration::from_nanos(1)), 0);
}

#[test]
fn what_is_too_long_for_ticks_is_for_ever() {
    assert_eq!(nanoseconds(Duration::from_micros(3)), 3000);
    assert_eq!(nanoseconds(Duration::MAX), u64::MAX);
}
