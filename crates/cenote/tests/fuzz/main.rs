//! Odd inputs, generated: documents in `config`, limits and numbers in `pool`. This file has the
//! number of cases and the rules of a configuration as its documentation states them.

mod config;
mod pool;

use std::env;
use std::time::Duration;

use cenote::Config;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// Duration fields that may be off.
const DURATIONS: [&str; 8] = [
    "acquire_timeout",
    "open_timeout",
    "idle_timeout",
    "max_lifetime",
    "check_after_idle",
    "heartbeat_interval",
    "leak_after",
    "slow_acquire",
];

/// Duration fields that may not be off.
const REQUIRED: [&str; 5] = [
    "check_timeout",
    "clean_timeout",
    "close_timeout",
    "upkeep_interval",
    "stuck_after",
];

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Generates `cases` inputs, the same on every run. With `PROPTEST_CASES` set, generates that many,
/// and other inputs on every run.
fn settings(cases: u32) -> ProptestConfig {
    let told = ProptestConfig::default();
    let long = env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if long { told.cases } else { cases },
        rng_seed: if long {
            told.rng_seed
        } else {
            RngSeed::Fixed(1)
        },
        // A failing input is printed whole, and becomes a test with a name.
        failure_persistence: None,
        ..told
    }
}

/// Returns the fields whose value is not allowed.
fn broken(config: &Config) -> Vec<&'static str> {
    let c = config;
    let most = c.max_size;
    let optional = [
        c.acquire_timeout,
        c.open_timeout,
        c.idle_timeout,
        c.max_lifetime,
        // Zero means every acquire.
        c.check_after_idle.filter(|after| !after.is_zero()),
        c.heartbeat_interval,
        c.leak_after,
        c.slow_acquire,
    ];
    let required = [
        c.check_timeout,
        c.clean_timeout,
        c.close_timeout,
        c.upkeep_interval,
        c.stuck_after,
    ];
    let durations = DURATIONS.into_iter().zip(optional);
    let required = REQUIRED.into_iter().zip(required.map(Some));
    let too_short_or_long = durations
        .chain(required)
        .filter(|(_, value)| value.is_some_and(|value| value.is_zero() || value > TEN_YEARS))
        .map(|(field, _)| field);
    let others = [
        ("name", c.name.as_deref() == Some("")),
        ("max_size", c.max_size < 1),
        ("min_size", c.min_size > most),
        ("min_idle", c.min_idle > most),
        ("max_opening", c.max_opening < 1),
        ("probes", c.probes < 1),
        ("max_uses", c.max_uses == Some(0)),
        (
            "lifetime_jitter",
            !(c.lifetime_jitter >= 0.0 && c.lifetime_jitter <= 1.0),
        ),
    ];
    let others = others
        .into_iter()
        .filter(|(_, broken)| *broken)
        .map(|(field, _)| field);
    too_short_or_long.chain(others).collect()
}
