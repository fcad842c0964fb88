//! Replays of loads whose answer is known by a formula.

use std::time::Duration;

use super::super::stretch::{NOISE, Stretch};
use super::*;

const MS: Duration = Duration::from_millis(1);

fn call(arrival: Duration, hold: Duration) -> Call {
    Call {
        arrival,
        patience: Duration::from_secs(3600),
        hold,
        among: 1,
        site: 0,
        is_guess: false,
    }
}

/// Returns a load of a pool that had all its resources at the start.
fn load(calls: Vec<Call>) -> Load {
    let last = calls.last().map(|call| call.arrival + call.hold);
    Load {
        config: Config::default(),
        total: 1000,
        calls,
        opens: Vec::new(),
        lasted: last.unwrap_or_default(),
    }
}

fn played(load: Load, size: usize) -> Figures {
    play(Arc::new(load), size, Case::Firm).unwrap()
}

#[track_caller]
fn assert_near(found: Duration, expected: Duration) {
    let off = found.abs_diff(expected);
    assert!(off <= expected / 500, "{found:?}, not {expected:?}");
}

/// D/D/c: every millisecond a caller comes who holds for 4 ms. Four resources are just enough, and
/// with three each caller waits a third of a millisecond longer than the one before.
#[test]
fn even_arrivals_wait_as_the_arithmetic_says() {
    let calls = || (0..900).map(|nth| call(nth * MS, 4 * MS)).collect();

    let enough = played(load(calls()), 4);
    let few = played(load(calls()), 3);

    assert_eq!(enough.wait(1.0), Duration::ZERO);
    assert!((enough.mean_in_use() - 4.0).abs() < 0.05, "{enough:?}");
    // The call with the number 899 begins when that with the number 896 ends.
    assert_near(few.wait(1.0), 299 * MS);
    assert_near(few.wait(0.5), 149 * MS);
}

#[test]
fn times_below_a_millisecond_are_exact() {
    let micros = Duration::from_micros;
    let calls = vec![
        call(micros(0), micros(250)),
        call(micros(100), micros(70)),
        call(micros(130), micros(1)),
    ];

    let figures = played(load(calls), 1);

    assert_near(figures.wait(0.5), micros(150));
    assert_near(figures.wait(1.0), micros(190));
}

/// Erlang's formula (Erlang C): the part of the callers that wait, for an offered load.
fn erlang_c(size: u32, offered: f64) -> f64 {
    let mut blocked = 1.0;
    for n in 1..=size {
        blocked = offered * blocked / (f64::from(n) + offered * blocked);
    }
    let size = f64::from(size);
    size * blocked / (size - offered * (1.0 - blocked))
}

/// M/M/c: arrivals at random, and leases of random length. Of the callers that wait, the part that
/// waits longer falls exponentially.
#[test]
fn random_arrivals_wait_as_erlang_says() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut drawn = |mean: f64| Duration::from_secs_f64(-mean * (1.0 - random.f64()).ln());
    let (each, hold) = (1e-3, 6.4e-3);
    let mut at = Duration::ZERO;
    let calls: Vec<_> = (0..20_000)
        .map(|_| {
            at += drawn(each);
            call(at, drawn(hold))
        })
        .collect();

    let figures = played(load(calls), 8);

    let size = 8.0;
    let waits = erlang_c(8, hold / each);
    // P(wait > t) = C exp(-(c - a) t / hold), solved for the quantiles.
    let quantile = |part: f64| (waits / (1.0 - part)).ln() * hold / (size - hold / each);
    for part in [0.9, 0.99] {
        let (found, expected) = (figures.wait(part).as_secs_f64(), quantile(part));
        let off = (found / expected - 1.0).abs();
        assert!(off < 0.1, "p{part}: {found}, not {expected}");
    }
    assert!((figures.mean_in_use() - 6.4).abs() < 0.2, "{figures:?}");
    assert!((figures.mean_idle() - 1.6).abs() < 0.2, "{figures:?}");
}

#[test]
fn callers_time_out_when_their_patience_is_over() {
    let mut calls: Vec<_> = (0..10).map(|nth| call(nth * MS, 1000 * MS)).collect();
    calls.iter_mut().for_each(|call| call.patience = 50 * MS);
    calls.push(call(5000 * MS, MS));

    let figures = played(load(calls), 3);

    assert_eq!((figures.timed_out, figures.refused), (7, 0));
    assert_eq!(figures.wait(1.0), Duration::ZERO);
}

#[test]
fn a_full_queue_refuses_as_the_pool_would() {
    let mut load = load((0..5).map(|nth| call(nth * MS, 100 * MS)).collect());
    load.config.max_waiters = Some(2);

    assert_eq!(played(load, 1).refused, 2);
}

#[test]
fn opens_take_as_long_as_recorded_and_are_counted() {
    let mut load = load(vec![
        call(Duration::ZERO, 50 * MS),
        call(MS, MS),
        call(200 * MS, MS),
    ]);
    (load.total, load.opens) = (0, vec![7 * MS]);

    let figures = played(load, 2);

    assert_eq!(figures.opens, 2);
    assert_near(figures.wait(1.0), 7 * MS);
    assert!(figures.mean_idle() > 1.0, "{figures:?}");
}

#[test]
fn idle_resources_are_closed_and_opened_again_in_the_gaps() {
    let mut load = load(vec![call(Duration::ZERO, MS), call(3600 * 1000 * MS, MS)]);
    (load.total, load.opens) = (1, vec![3 * MS]);
    load.config.idle_timeout = Some(Duration::from_secs(60));

    let figures = played(load, 1);

    assert_eq!(figures.opens, 1);
    assert!(figures.mean_idle() < 0.1, "{figures:?}");
}

#[test]
fn resources_that_are_kept_ready_are_opened_at_their_time() {
    let mut load = load(vec![call(Duration::ZERO, 500 * MS), call(400 * MS, MS)]);
    (load.total, load.opens) = (0, vec![100 * MS]);
    load.config.min_idle = 1;

    let figures = played(load, 2);

    assert_eq!(figures.opens, 2);
    assert_eq!(figures.wait(0.5), Duration::ZERO, "one was ready");
}

#[test]
fn leases_get_longer_only_where_more_are_out_than_before() {
    let stretch = Stretch {
        sigma: 1.0,
        kappa: 0.0,
        measured: true,
    };
    let calls = || (0..4).map(|_| call(Duration::ZERO, 10 * MS)).collect();
    let wait = |size, case| play(Arc::new(load(calls())), size, case).unwrap().wait(1.0);
    let longer = |time: Duration| time.mul_f64(1.0 + NOISE);

    assert_near(wait(1, Case::Firm), 30 * MS);
    assert_near(wait(1, Case::Best), (30 * MS).mul_f64(1.0 - NOISE));
    assert_near(wait(1, Case::Worst(stretch)), longer(30 * MS));
    // One lease alone takes 10 ms. The second is the second of two and takes 20 ms.
    assert_near(wait(2, Case::Worst(stretch)), longer(20 * MS));
}
