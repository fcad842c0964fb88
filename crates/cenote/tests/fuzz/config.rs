//! Odd configuration documents, generated near the grammar. None panics, every refusal names the
//! line and the expected values, and an accepted document is valid and survives a round trip.
//! `cargo xtask fuzz` generates many more.
#![cfg(feature = "serde")]

use std::error::Error;
use std::io;
use std::time::Duration;

use cenote::{Config, Pool};
use proptest::prelude::*;
use proptest::sample::select;

use crate::{DURATIONS, REQUIRED, broken, settings};

const COUNTS: [&str; 7] = [
    "max_size",
    "min_size",
    "min_idle",
    "max_opening",
    "max_uses",
    "max_waiters",
    "probes",
];
const WORDS: [&str; 4] = ["on_open_error", "idle_order", "nested", "warm_up"];

/// A value that is written the same in JSON and TOML, except null, which TOML does not have.
#[derive(Clone, Debug)]
enum Value {
    Number(i128),
    Fraction(f64),
    Text(String),
    Other(&'static str),
}

impl Value {
    fn json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Fraction(number) => serde_json::json!(number).to_string(),
            Self::Text(text) => serde_json::json!(text).to_string(),
            Self::Other(other) => (*other).to_owned(),
        }
    }

    fn toml(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Fraction(number) => toml::Value::from(*number).to_string(),
            Self::Text(text) => toml::Value::from(text.as_str()).to_string(),
            Self::Other(other) => other.replace("null", "{}"),
        }
    }
}

type Line = (String, Value);

fn toml_of(lines: &[Line]) -> String {
    let line =
        |(key, value): &Line| format!("{} = {}\n", Value::Text(key.clone()).toml(), value.toml());
    lines.iter().map(line).collect()
}

fn json_of(lines: &[Line]) -> String {
    let line =
        |(key, value): &Line| format!("{}: {}", Value::Text(key.clone()).json(), value.json());
    let lines: Vec<_> = lines.iter().map(line).collect();
    format!("{{{}}}", lines.join(",\n"))
}

fn number() -> impl Strategy<Value = Value> {
    let odd = [
        0,
        1,
        2,
        10,
        i128::from(i64::MAX),
        i128::from(u32::MAX),
        i128::from(u64::MAX),
    ];
    prop_oneof![
        3 => (0..20_i128).prop_map(Value::Number),
        1 => select(odd.to_vec()).prop_map(Value::Number),
        1 => any::<i64>().prop_map(|number| Value::Number(number.into())),
    ]
}

fn fraction() -> impl Strategy<Value = Value> {
    prop_oneof![0.0..=1.0, proptest::num::f64::ANY].prop_map(Value::Fraction)
}

/// A duration with a valid unit, or nearly so.
fn duration() -> impl Strategy<Value = Value> {
    let units = "(ns|us|µs|ms|s|sec|m|min|h|hours|d|w|M|y|years)";
    let fine = proptest::string::string_regex(&format!("[1-9][0-9]{{0,4}} ?{units}"));
    let off = "(0s|off|OFF| off|-5s|1.5s|1e3s|5 parsecs|584554531y|18446744073709551615s|s|)";
    prop_oneof![
        4 => fine.expect("this is a regex"),
        1 => proptest::string::string_regex(&format!("([0-9]{{1,22}} ?{units} ?){{1,3}}"))
            .expect("this is a regex"),
        1 => proptest::string::string_regex(off).expect("this is a regex"),
        1 => any::<String>(),
    ]
    .prop_map(Value::Text)
}

fn word() -> impl Strategy<Value = Value> {
    let words = [
        "fail",
        "retry",
        "hot",
        "oldest",
        "allow",
        "report",
        "deny",
        "required",
        "best_effort",
        "Fail",
        "",
    ];
    select(words.to_vec()).prop_map(|word| Value::Text(word.to_owned()))
}

fn other() -> impl Strategy<Value = Value> {
    select(&["true", "false", "null", "[]", "[1, 2]", "{}"][..]).prop_map(Value::Other)
}

fn line() -> impl Strategy<Value = Line> {
    let named = |names: Vec<&'static str>, value: BoxedStrategy<Value>| {
        (select(names).prop_map(str::to_owned), value)
    };
    let durations: Vec<_> = DURATIONS.into_iter().chain(REQUIRED).collect();
    let known: Vec<_> = [
        &COUNTS[..],
        &WORDS,
        &DURATIONS,
        &REQUIRED,
        &["name", "check_on_return", "self_probe"],
    ]
    .concat();
    let any_value = prop_oneof![number(), fraction(), duration(), word(), other()];
    prop_oneof![
        6 => named(COUNTS.to_vec(), number().boxed()),
        6 => named(durations, duration().boxed()),
        2 => named(WORDS.to_vec(), word().boxed()),
        1 => named(vec!["check_on_return", "self_probe"], other().boxed()),
        1 => named(vec!["lifetime_jitter"], fraction().boxed()),
        1 => named(vec!["name"], any::<String>().prop_map(Value::Text).boxed()),
        1 => named(known, any_value.clone().boxed()),
        1 => ("[a-zA-Z_.-]{0,12}|\\PC{1,4}", any_value),
    ]
}

fn build(config: &Config) -> Result<(), cenote::ConfigError> {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(()));
    pool.config(config.clone()).build().map(drop)
}

/// Returns whether TOML can express the numbers of this config: they end at `i64::MAX`.
fn fits_toml(config: &Config) -> bool {
    let counts = [
        config.max_size,
        config.max_opening,
        config.probes,
        config.max_waiters.unwrap_or(0),
    ];
    let most = i64::MAX as u64;
    counts.into_iter().all(|count| count as u64 <= most)
        && config.max_uses.is_none_or(|uses| uses <= most)
}

fn assert_round_trip(config: &Config) -> Result<(), TestCaseError> {
    let json = serde_json::to_string(config).expect("every configuration can be written");
    let mut read: Config = serde_json::from_str(&json).map_err(|error| refused(&json, &error))?;
    // The JSON reader is fast with fractions and may miss the last bit.
    if (read.lifetime_jitter - config.lifetime_jitter).abs() <= f64::EPSILON {
        read.lifetime_jitter = config.lifetime_jitter;
    }
    prop_assert_eq!(&read, config);

    match toml::to_string(config) {
        Ok(toml) => {
            let read: Config = toml::from_str(&toml).map_err(|error| refused(&toml, &error))?;
            prop_assert_eq!(&read, config);
        }
        Err(error) => prop_assert!(!fits_toml(config), "{error}"),
    }
    Ok(())
}

fn refused(text: &str, error: &dyn Error) -> TestCaseError {
    TestCaseError::fail(format!("written, and not read: {text}: {error}"))
}

/// Asserts that `build` decides as the documentation of the fields says.
fn assert_judged(config: &Config) -> Result<(), TestCaseError> {
    let broken = broken(config);
    match build(config) {
        Ok(()) => {
            prop_assert!(broken.is_empty(), "accepted, but {broken:?}");
            assert_round_trip(config)
        }
        Err(error) => {
            prop_assert!(broken.contains(&error.field()), "{error}, but {broken:?}");
            let text = error.to_string();
            for part in [error.field(), error.value(), error.allowed()] {
                prop_assert!(!part.is_empty() && text.contains(part), "{text}");
            }
            Ok(())
        }
    }
}

proptest! {
    #![proptest_config(settings(1_000))]

    #[test]
    fn whatever_a_document_says_it_is_refused_or_judged_by_the_rules(
        lines in prop::collection::vec(line(), 0..8),
    ) {
        let read = [
            toml::from_str::<Config>(&toml_of(&lines)).ok(),
            serde_json::from_str::<Config>(&json_of(&lines)).ok(),
        ];

        for config in read.iter().flatten() {
            assert_judged(config)?;
        }
    }

    #[test]
    fn a_refused_line_is_named_with_the_values_it_accepts(line in line()) {
        let key = line.0.clone();
        let lines = [line];

        if let Err(error) = toml::from_str::<Config>(&toml_of(&lines)) {
            let text = error.to_string();
            prop_assert!(text.contains("line 1"), "{text}");
            prop_assert!(text.contains(&Value::Text(key).toml()), "{text}");
            prop_assert!(explains(&text), "{text}");
        }
        if let Err(error) = serde_json::from_str::<Config>(&json_of(&lines)) {
            let text = error.to_string();
            prop_assert!(text.contains("at line 1 column ") && explains(&text), "{text}");
        }
    }

    #[test]
    fn a_line_said_twice_is_refused(line in line()) {
        let lines = [line.clone(), line];

        prop_assert!(toml::from_str::<Config>(&toml_of(&lines)).is_err());
        prop_assert!(serde_json::from_str::<Config>(&json_of(&lines)).is_err());
    }

    #[test]
    fn text_that_is_no_document_is_refused(text in "\\PC*") {
        if let Ok(config) = toml::from_str::<Config>(&text) {
            prop_assert_eq!(config, Config::default());
        }
        if let Ok(config) = serde_json::from_str::<Config>(&text) {
            prop_assert_eq!(config, Config::default());
        }
    }

    #[test]
    fn a_duration_of_any_length_survives_a_round_trip(
        seconds in 0..=u64::MAX,
        nanos in 0..1_000_000_000_u32,
    ) {
        let config = Config {
            check_timeout: Duration::new(seconds, nanos),
            ..Config::default()
        };

        assert_round_trip(&config)?;
    }
}

/// Returns whether a refusal names the accepted values, or says that a number is too large.
fn explains(text: &str) -> bool {
    ["expected", "number", "out of range"]
        .iter()
        .any(|word| text.contains(word))
}
