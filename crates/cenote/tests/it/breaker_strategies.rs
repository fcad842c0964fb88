//! The built-in strategies by themselves: when they trip, and how long until they try again.

use std::time::{Duration, Instant};

use cenote::breaker::{
    BreakerState, ConsecutiveFailures, Failed, Failure, FailureRate, Recovery, Strategy, Verdict,
};

const SECOND: Duration = Duration::from_secs(1);
const EVERY_FAILURE: [Failure; 3] = [Failure::Open, Failure::Check, Failure::Return];

/// Some moment. Strategies are told the time; they read no clock.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to make an `Instant`"
)]
fn noon() -> Instant {
    Instant::now()
}

fn fail(strategy: &dyn Strategy, state: BreakerState, at: Instant) -> Verdict {
    strategy.report_failure(state, &Failed::new(Failure::Open), at)
}

/// Reports `times` failures while active, all at one moment, and returns the last verdict.
fn fail_times(strategy: &dyn Strategy, times: usize, at: Instant) -> Verdict {
    (0..times).fold(Verdict::Keep, |_, _| {
        fail(strategy, BreakerState::Active, at)
    })
}

/// Returns the time from tripping until it recovers.
fn delay(strategy: &dyn Strategy) -> Duration {
    match strategy.should_recover(Duration::ZERO) {
        Recovery::After(delay) => delay,
        Recovery::Now => Duration::ZERO,
    }
}

/// Asserts that `delay` is between half of `full` and `full`, as a jittered delay is.
#[track_caller]
fn assert_jittered(delay: Duration, full: Duration) {
    assert!(
        full / 2 <= delay && delay <= full,
        "{delay:?} is not between half of {full:?} and {full:?}"
    );
}

fn trip_and_fail_recoveries(strategy: &dyn Strategy, fulls: &[Duration]) {
    let at = noon();
    for (nth, full) in fulls.iter().enumerate() {
        let state = match nth {
            0 => BreakerState::Active,
            _ => BreakerState::Recovering,
        };

        let verdict = fail(strategy, state, at);

        assert_eq!(verdict, Verdict::Deactivate, "failure {nth}");
        assert_jittered(delay(strategy), *full);
    }
}

#[test]
fn consecutive_failures_trip_at_the_threshold_and_not_before() {
    let strategy = ConsecutiveFailures::new(3);
    let at = noon();

    let verdicts = [(); 3].map(|()| fail(&strategy, BreakerState::Active, at));

    assert_eq!(
        verdicts,
        [Verdict::Keep, Verdict::Keep, Verdict::Deactivate]
    );
}

#[test]
fn every_kind_of_failure_counts_in_a_row() {
    let strategy = ConsecutiveFailures::new(3);
    let at = noon();

    let verdicts = EVERY_FAILURE
        .map(|failure| strategy.report_failure(BreakerState::Active, &Failed::new(failure), at));

    assert_eq!(
        verdicts,
        [Verdict::Keep, Verdict::Keep, Verdict::Deactivate]
    );
}

#[test]
fn a_success_in_between_starts_the_count_again() {
    let strategy = ConsecutiveFailures::new(2);
    let at = noon();
    let _ = fail(&strategy, BreakerState::Active, at);

    let success = strategy.report_success(BreakerState::Active, at);

    assert_eq!(success, Verdict::Keep);
    assert_eq!(fail(&strategy, BreakerState::Active, at), Verdict::Keep);
    assert_eq!(
        fail(&strategy, BreakerState::Active, at),
        Verdict::Deactivate
    );
}

#[test]
fn a_threshold_of_zero_is_one() {
    let strategy = ConsecutiveFailures::new(0);

    let healthy = strategy.report_success(BreakerState::Active, noon());
    let failed = fail(&strategy, BreakerState::Active, noon());

    assert_eq!((healthy, failed), (Verdict::Keep, Verdict::Deactivate));
}

#[test]
fn the_largest_threshold_is_not_reached_by_a_few() {
    let strategy = ConsecutiveFailures::new(u32::MAX);

    let verdict = fail_times(&strategy, 10_000, noon());

    assert_eq!(verdict, Verdict::Keep);
}

#[test]
fn while_inactive_neither_success_nor_failure_changes_anything() {
    let at = noon();
    let strategies: [Box<dyn Strategy>; 2] = [
        Box::new(ConsecutiveFailures::new(1)),
        Box::new(FailureRate::new(0.5, SECOND, 1)),
    ];
    for strategy in strategies {
        let _ = fail(&*strategy, BreakerState::Active, at);
        let before = delay(&*strategy);

        let success = strategy.report_success(BreakerState::Inactive, at);
        let failure = fail(&*strategy, BreakerState::Inactive, at);

        assert_eq!((success, failure), (Verdict::Keep, Verdict::Keep));
        assert_eq!(delay(&*strategy), before, "the delay was drawn anew");
    }
}

#[test]
fn while_recovering_one_success_activates_and_one_failure_deactivates() {
    let at = noon();
    let strategies: [Box<dyn Strategy>; 2] = [
        Box::new(ConsecutiveFailures::new(5)),
        Box::new(FailureRate::new(0.9, SECOND, 100)),
    ];
    for strategy in strategies {
        let success = strategy.report_success(BreakerState::Recovering, at);
        let failure = fail(&*strategy, BreakerState::Recovering, at);

        assert_eq!((success, failure), (Verdict::Activate, Verdict::Deactivate));
    }
}

#[test]
fn a_rate_trips_when_that_part_of_the_reports_failed() {
    let strategy = FailureRate::new(0.5, 60 * SECOND, 4);
    let at = noon();
    let _ = strategy.report_success(BreakerState::Active, at);
    let _ = strategy.report_success(BreakerState::Active, at);
    let _ = strategy.report_success(BreakerState::Active, at);

    let verdicts = [(); 3].map(|()| fail(&strategy, BreakerState::Active, at));

    // One of four, two of five, three of six.
    assert_eq!(
        verdicts,
        [Verdict::Keep, Verdict::Keep, Verdict::Deactivate]
    );
}

#[test]
fn a_rate_needs_its_least_number_of_reports() {
    let strategy = FailureRate::new(0.1, 60 * SECOND, 5);
    let at = noon();

    let verdicts = [(); 5].map(|()| fail(&strategy, BreakerState::Active, at));

    let keep = Verdict::Keep;
    assert_eq!(verdicts, [keep, keep, keep, keep, Verdict::Deactivate]);
}

#[test]
fn a_report_older_than_the_window_does_not_count() {
    let strategy = FailureRate::new(1.0, 10 * SECOND, 3);
    let at = noon();
    let _ = fail(&strategy, BreakerState::Active, at);
    let _ = fail(&strategy, BreakerState::Active, at);

    let late = fail(&strategy, BreakerState::Active, at + 11 * SECOND);
    let second = fail(&strategy, BreakerState::Active, at + 11 * SECOND);
    let third = fail(&strategy, BreakerState::Active, at + 12 * SECOND);

    assert_eq!((late, second), (Verdict::Keep, Verdict::Keep));
    assert_eq!(third, Verdict::Deactivate);
}

#[test]
fn old_successes_do_not_hide_new_failures() {
    let strategy = FailureRate::new(0.5, 10 * SECOND, 2);
    let at = noon();
    for _ in 0..2_000 {
        let _ = strategy.report_success(BreakerState::Active, at);
    }

    let first = fail(&strategy, BreakerState::Active, at + 11 * SECOND);
    let second = fail(&strategy, BreakerState::Active, at + 11 * SECOND);

    assert_eq!((first, second), (Verdict::Keep, Verdict::Deactivate));
}

#[test]
fn a_rate_forgets_its_reports_when_it_recovers() {
    let strategy = FailureRate::new(0.5, 60 * SECOND, 4);
    let at = noon();
    assert_eq!(fail_times(&strategy, 4, at), Verdict::Deactivate);

    let recovered = strategy.report_success(BreakerState::Recovering, at);

    assert_eq!(recovered, Verdict::Activate);
    assert_eq!(fail_times(&strategy, 3, at), Verdict::Keep);
    assert_eq!(fail_times(&strategy, 1, at), Verdict::Deactivate);
}

#[test]
fn a_success_never_trips_a_rate() {
    let strategy = FailureRate::new(0.0, 60 * SECOND, 1);

    let verdict = strategy.report_success(BreakerState::Active, noon());

    assert_eq!(verdict, Verdict::Keep);
}

#[test]
fn more_reports_are_asked_for_than_are_kept_and_it_still_trips() {
    let strategy = FailureRate::new(1.0, 60 * SECOND, usize::MAX);

    let verdict = fail_times(&strategy, 1_024, noon());

    assert_eq!(verdict, Verdict::Deactivate);
}

#[test]
fn a_rate_that_is_no_number_or_over_one_never_trips_and_never_panics() {
    for rate in [f64::NAN, f64::INFINITY, 1.5] {
        let strategy = FailureRate::new(rate, 60 * SECOND, 1);

        let verdict = fail_times(&strategy, 100, noon());

        assert_eq!(verdict, Verdict::Keep, "rate {rate}");
    }
}

#[test]
fn a_rate_of_zero_or_less_trips_at_the_first_failure() {
    for rate in [0.0, -1.0, f64::NEG_INFINITY] {
        let strategy = FailureRate::new(rate, 60 * SECOND, 0);

        let verdict = fail_times(&strategy, 1, noon());

        assert_eq!(verdict, Verdict::Deactivate, "rate {rate}");
    }
}

#[test]
fn windows_of_nothing_and_of_for_ever_do_not_panic() {
    let at = noon();
    let nothing = FailureRate::new(1.0, Duration::ZERO, 2);
    let for_ever = FailureRate::new(1.0, Duration::MAX, 2);

    let apart = [at, at + SECOND].map(|at| fail(&nothing, BreakerState::Active, at));
    let far_apart =
        [at, at + 1_000_000 * SECOND].map(|at| fail(&for_ever, BreakerState::Active, at));

    assert_eq!(apart, [Verdict::Keep, Verdict::Keep]);
    assert_eq!(far_apart, [Verdict::Keep, Verdict::Deactivate]);
}

#[test]
fn reports_that_come_out_of_order_do_not_panic() {
    let strategy = FailureRate::new(1.0, 10 * SECOND, 2);
    let at = noon() + 100 * SECOND;
    let _ = fail(&strategy, BreakerState::Active, at);

    let verdict = fail(&strategy, BreakerState::Active, at - SECOND);

    assert_eq!(verdict, Verdict::Deactivate);
}

#[test]
fn the_recovery_delay_doubles_up_to_the_longest() {
    let fulls = [1, 2, 4, 8, 10, 10, 10].map(Duration::from_secs);

    trip_and_fail_recoveries(
        &ConsecutiveFailures::new(1).recover_after(SECOND, 10 * SECOND),
        &fulls,
    );
    trip_and_fail_recoveries(
        &FailureRate::new(0.5, SECOND, 1).recover_after(SECOND, 10 * SECOND),
        &fulls,
    );
}

#[test]
fn the_recovery_delay_is_about_a_second_by_default_and_at_most_a_minute() {
    let fulls = [1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs);

    trip_and_fail_recoveries(&ConsecutiveFailures::new(1), &fulls);
    trip_and_fail_recoveries(&FailureRate::new(0.5, SECOND, 1), &fulls);
}

#[test]
fn the_recovery_delay_stays_within_bounds_after_very_many_failures() {
    let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, 60 * SECOND);
    for _ in 0..100 {
        let _ = fail(&strategy, BreakerState::Recovering, noon());
    }

    let delay = delay(&strategy);

    assert_jittered(delay, 60 * SECOND);
}

#[test]
fn the_recovery_delay_differs_from_one_pool_to_the_next() {
    let delays: std::collections::HashSet<_> = (0..20)
        .map(|_| {
            let strategy = ConsecutiveFailures::new(1);
            let _ = fail(&strategy, BreakerState::Active, noon());
            delay(&strategy)
        })
        .collect();

    assert!(delays.len() > 1, "twenty pools drew the same delay");
}

#[test]
fn the_recovery_delay_is_short_again_after_a_success() {
    let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, 60 * SECOND);
    let at = noon();
    for _ in 0..5 {
        let _ = fail(&strategy, BreakerState::Recovering, at);
    }
    let _ = strategy.report_success(BreakerState::Recovering, at);

    let _ = fail(&strategy, BreakerState::Active, at);

    assert_jittered(delay(&strategy), SECOND);
}

#[test]
fn a_strategy_recovers_when_the_delay_is_over_and_says_how_much_is_left_before() {
    let strategy = ConsecutiveFailures::new(1).recover_after(8 * SECOND, 8 * SECOND);
    let _ = fail(&strategy, BreakerState::Active, noon());
    let full = delay(&strategy);

    let midway = strategy.should_recover(full - SECOND);
    let over = strategy.should_recover(full);

    assert_eq!(midway, Recovery::After(SECOND));
    assert_eq!(over, Recovery::Now);
}

#[test]
fn a_delay_of_nothing_recovers_at_once_and_a_huge_one_does_not_panic() {
    let at_once = ConsecutiveFailures::new(1).recover_after(Duration::ZERO, Duration::ZERO);
    let never = ConsecutiveFailures::new(1).recover_after(Duration::MAX, Duration::MAX);
    let upside_down = ConsecutiveFailures::new(1).recover_after(60 * SECOND, SECOND);
    for strategy in [&at_once, &never, &upside_down] {
        let _ = fail(strategy, BreakerState::Recovering, noon());
        let _ = fail(strategy, BreakerState::Recovering, noon());
    }

    let delays = [&at_once, &never, &upside_down].map(|strategy| delay(strategy));

    assert_eq!(delays[0], Duration::ZERO);
    assert_jittered(delays[1], Duration::MAX);
    assert_jittered(delays[2], SECOND);
}
