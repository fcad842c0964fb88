//! Configuration: its defaults, and which values are refused with which text.

use std::sync::Arc;
use std::time::Duration;

use cenote::config::{IdleOrder, Nested, OnOpenError, WarmUp};
use cenote::{Config, ConfigError, Pool};
use cenote_testkit::{Backend, GatedManager, GatedPool};

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
const TOO_LONG: Duration = TEN_YEARS.saturating_add(Duration::from_nanos(1));

fn manager() -> GatedManager {
    GatedManager(Arc::new(Backend::default()))
}

fn build(set: impl FnOnce(&mut Config)) -> Result<GatedPool, ConfigError> {
    let mut config = Config::default();
    set(&mut config);
    Pool::builder(manager()).config(config).build()
}

/// Asserts that a value is refused, and that the error names the field, the value and the range, as
/// data and in its text.
#[track_caller]
fn assert_refused(set: impl FnOnce(&mut Config), field: &str, value: &str, allowed: &str) {
    let error = build(set).expect_err("it was to be refused");

    assert_eq!(
        (error.field(), error.value(), error.allowed()),
        (field, value, allowed)
    );
    assert_eq!(
        error.to_string(),
        format!("`{field}` is {value}, allowed: {allowed}")
    );
}

#[track_caller]
fn assert_accepted(set: impl FnOnce(&mut Config)) {
    build(set).expect("it was to be accepted");
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let seconds = Duration::from_secs;

    let defaults = Config::default();

    let table = Config {
        name: None,
        max_size: 10,
        min_size: 0,
        min_idle: 0,
        acquire_timeout: Some(seconds(5)),
        open_timeout: Some(seconds(10)),
        max_opening: 4,
        on_open_error: OnOpenError::Fail,
        idle_timeout: Some(seconds(5 * 60)),
        max_lifetime: Some(seconds(30 * 60)),
        lifetime_jitter: 0.1,
        max_uses: None,
        check_after_idle: Some(seconds(5)),
        check_on_return: false,
        check_timeout: seconds(2),
        clean_timeout: seconds(5),
        close_timeout: seconds(5),
        heartbeat_interval: None,
        upkeep_interval: seconds(30),
        leak_after: Some(seconds(30)),
        slow_acquire: Some(seconds(1)),
        stuck_after: seconds(5),
        idle_order: IdleOrder::Hot,
        max_waiters: None,
        nested: Nested::Report,
        warm_up: WarmUp::Required,
        probes: 1,
        self_probe: true,
    };
    assert_eq!(defaults, table);
}

#[test]
fn the_defaults_are_valid() {
    assert_accepted(|_| {});
}

#[test]
fn a_pool_without_a_name_gets_one_of_its_own() {
    let first = build(|_| {}).unwrap();
    let second = build(|_| {}).unwrap();

    assert!(first.name().starts_with("pool-"), "{}", first.name());
    assert_ne!(first.name(), second.name());
}

#[test]
fn an_empty_name_is_refused() {
    assert_refused(
        |config| config.name = Some(String::new()),
        "name",
        "\"\"",
        "at least one character, or none",
    );
}

#[test]
fn a_name_of_one_character_is_accepted() {
    let pool = build(|config| config.name = Some("x".to_owned())).unwrap();

    assert_eq!(pool.name(), "x");
}

#[test]
fn sizes_of_zero_are_refused() {
    assert_refused(|config| config.max_size = 0, "max_size", "0", "at least 1");
    assert_refused(
        |config| config.max_opening = 0,
        "max_opening",
        "0",
        "at least 1",
    );
    assert_refused(|config| config.probes = 0, "probes", "0", "at least 1");
    assert_refused(
        |config| config.max_uses = Some(0),
        "max_uses",
        "0",
        "at least 1, or none",
    );
}

#[test]
fn least_sizes_over_the_largest_are_refused() {
    assert_refused(
        |config| config.min_size = 11,
        "min_size",
        "11",
        "0 to `max_size` (10)",
    );
    assert_refused(
        |config| config.min_idle = usize::MAX,
        "min_idle",
        &usize::MAX.to_string(),
        "0 to `max_size` (10)",
    );
    assert_refused(
        |config| (config.max_size, config.min_size) = (3, 4),
        "min_size",
        "4",
        "0 to `max_size` (3)",
    );
}

#[test]
fn a_jitter_outside_zero_to_one_is_refused() {
    for (jitter, shown) in [
        (-0.1, "-0.1"),
        (1.1, "1.1"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
    ] {
        assert_refused(
            |config| config.lifetime_jitter = jitter,
            "lifetime_jitter",
            shown,
            "0 to 1",
        );
    }
}

/// A setter, with the name of its field.
type Sets<T> = (&'static str, fn(&mut Config, T));

const CAN_BE_OFF: [Sets<Option<Duration>>; 7] = [
    ("acquire_timeout", |config, value| {
        config.acquire_timeout = value;
    }),
    ("open_timeout", |config, value| config.open_timeout = value),
    ("idle_timeout", |config, value| config.idle_timeout = value),
    ("max_lifetime", |config, value| config.max_lifetime = value),
    ("heartbeat_interval", |config, value| {
        config.heartbeat_interval = value;
    }),
    ("leak_after", |config, value| config.leak_after = value),
    ("slow_acquire", |config, value| config.slow_acquire = value),
];

const CANNOT_BE_OFF: [Sets<Duration>; 5] = [
    ("check_timeout", |config, value| {
        config.check_timeout = value;
    }),
    ("clean_timeout", |config, value| {
        config.clean_timeout = value;
    }),
    ("close_timeout", |config, value| {
        config.close_timeout = value;
    }),
    ("upkeep_interval", |config, value| {
        config.upkeep_interval = value;
    }),
    ("stuck_after", |config, value| config.stuck_after = value),
];

#[test]
fn durations_of_zero_and_over_ten_years_are_refused() {
    for (value, shown) in [
        (Duration::ZERO, "0s"),
        (TOO_LONG, "315360000.000000001s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        for (field, set) in CAN_BE_OFF {
            assert_refused(
                |config| set(config, Some(value)),
                field,
                shown,
                "more than zero and at most ten years, or none",
            );
        }
        for (field, set) in CANNOT_BE_OFF {
            assert_refused(
                |config| set(config, value),
                field,
                shown,
                "more than zero and at most ten years",
            );
        }
    }
}

#[test]
fn durations_at_the_edge_are_accepted() {
    for value in [Duration::from_nanos(1), TEN_YEARS] {
        for (_, set) in CAN_BE_OFF {
            assert_accepted(|config| set(config, Some(value)));
        }
        for (_, set) in CANNOT_BE_OFF {
            assert_accepted(|config| set(config, value));
        }
    }
}

#[test]
fn durations_that_may_be_off_are_accepted_off() {
    for (_, set) in CAN_BE_OFF {
        assert_accepted(|config| set(config, None));
    }
    assert_accepted(|config| config.check_after_idle = None);
}

#[test]
fn a_check_after_no_idleness_is_accepted_and_after_over_ten_years_is_refused() {
    assert_accepted(|config| config.check_after_idle = Some(Duration::ZERO));
    assert_accepted(|config| config.check_after_idle = Some(TEN_YEARS));
    assert_refused(
        |config| config.check_after_idle = Some(TOO_LONG),
        "check_after_idle",
        "315360000.000000001s",
        "zero (every acquire) to ten years, or none (never)",
    );
}

#[test]
fn numbers_at_the_edge_are_accepted() {
    assert_accepted(|config| config.max_size = 1);
    assert_accepted(|config| config.max_size = usize::MAX);
    assert_accepted(|config| config.min_size = 10);
    assert_accepted(|config| config.min_idle = 10);
    assert_accepted(|config| config.max_opening = 1);
    assert_accepted(|config| config.max_opening = usize::MAX);
    assert_accepted(|config| config.lifetime_jitter = 0.0);
    assert_accepted(|config| config.lifetime_jitter = 1.0);
    assert_accepted(|config| config.max_uses = Some(1));
    assert_accepted(|config| config.max_uses = Some(u64::MAX));
    assert_accepted(|config| config.max_waiters = Some(0));
    assert_accepted(|config| config.probes = 1);
    assert_accepted(|config| config.probes = usize::MAX);
}

#[tokio::test(start_paused = true)]
async fn a_pool_with_the_largest_values_lends() {
    let pool = build(|config| {
        config.max_size = usize::MAX;
        config.max_opening = usize::MAX;
        config.max_uses = Some(u64::MAX);
        config.max_waiters = Some(usize::MAX);
        config.probes = usize::MAX;
        for (_, set) in CAN_BE_OFF {
            set(config, Some(TEN_YEARS));
        }
        for (_, set) in CANNOT_BE_OFF {
            set(config, TEN_YEARS);
        }
        config.check_after_idle = Some(TEN_YEARS);
    })
    .unwrap();

    drop(pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());

    assert_eq!((pool.status().idle, pool.status().opened), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pool_with_the_smallest_values_lends() {
    let pool = build(|config| {
        config.max_size = 1;
        config.max_opening = 1;
        config.max_uses = Some(1);
        config.probes = 1;
        config.check_after_idle = Some(Duration::ZERO);
        config.idle_timeout = Some(Duration::from_nanos(1));
        config.max_lifetime = Some(Duration::from_nanos(1));
        config.upkeep_interval = Duration::from_nanos(1);
        config.leak_after = Some(Duration::from_nanos(1));
        config.stuck_after = Duration::from_nanos(1);
    })
    .unwrap();

    drop(pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());

    assert_eq!(pool.status().acquired, 2);
}

#[test]
fn a_refused_resize_is_reported_in_the_same_words() {
    let pool = build(|config| config.min_size = 3).unwrap();

    let error = pool.resize(2).unwrap_err();

    assert_eq!(
        (error.field(), error.value(), error.allowed()),
        (
            "max_size",
            "2",
            "at least 3 (`min_size` and `min_idle` must fit)"
        )
    );
    assert_eq!(pool.status().max_size, 10, "it was changed all the same");
}
