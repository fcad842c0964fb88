//! The law is found in leases that follow it, and not where it is not.

use std::time::Duration;

use cenote::Config;

use super::*;
use crate::replay::load::Call;

/// Returns leases of two lines of code among 1 to `most`, as long as `hold` says in milliseconds.
fn load(most: u32, hold: impl Fn(u32, usize) -> f64) -> Load {
    let call = |nth: u32| {
        let (among, site) = (1 + nth % most, (nth / most % 2) as usize);
        Call {
            arrival: Duration::from_millis(nth.into()),
            patience: Duration::MAX,
            hold: Duration::from_secs_f64(hold(among, site) / 1e3),
            among,
            site,
            is_guess: false,
        }
    };
    Load {
        config: Config::default(),
        total: 0,
        calls: (0..4800).map(call).collect(),
        opens: Vec::new(),
        lasted: Duration::ZERO,
    }
}

#[test]
fn a_server_that_gets_slower_is_found_whatever_the_lines_of_code_do() {
    let slower = |among: u32, site: usize| {
        (1.0 + 0.1 * f64::from(among - 1)) * if site == 0 { 5.0 } else { 80.0 }
    };

    let found = Stretch::of(&load(8, slower));

    assert!(found.measured);
    assert!((found.sigma - 0.1).abs() < 0.01, "{found:?}");
    assert!((found.factor(8, 15) - 2.4 / 1.7).abs() < 0.05, "{found:?}");
}

#[test]
fn a_server_that_scales_still_has_a_band() {
    let found = Stretch::of(&load(8, |_, _| 5.0));

    assert!(found.measured);
    assert_eq!((found.sigma, found.kappa), (LEAST_SIGMA, 0.0));
    assert!(found.factor(8, 16) > 1.1, "{found:?}");
}

#[test]
fn a_trace_of_one_level_assumes_a_full_server() {
    let found = Stretch::of(&load(1, |_, _| 5.0));

    assert!(!found.measured);
    assert_eq!(found.factor(4, 8), 2.0);
    assert_eq!(found.factor(8, 4), 1.0, "never shorter");
}

#[test]
fn an_empty_trace_has_an_answer_too() {
    let mut none = load(1, |_, _| 5.0);
    none.calls.clear();

    assert!(!Stretch::of(&none).measured);
}
