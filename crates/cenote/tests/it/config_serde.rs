//! Configuration from a file: durations as people write them, and errors that name the wrong value
//! and the expected ones.
#![cfg(feature = "serde")]

use std::time::Duration;

use cenote::config::{IdleOrder, Nested, OnOpenError, WarmUp};
use cenote::{Config, Pool};

const REQUIRED: [&str; 5] = [
    "check_timeout",
    "clean_timeout",
    "close_timeout",
    "upkeep_interval",
    "stuck_after",
];

/// Returns the message of a TOML line that must be refused.
#[track_caller]
fn toml_error(line: &str) -> String {
    match toml::from_str::<Config>(line) {
        Ok(_) => panic!("`{line}` was to be refused"),
        Err(error) => error.to_string(),
    }
}

/// Returns the message of a JSON object that must be refused.
#[track_caller]
fn json_error(object: &str) -> String {
    match serde_json::from_str::<Config>(object) {
        Ok(_) => panic!("`{object}` was to be refused"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn nothing_said_is_the_default() {
    let from_toml: Config = toml::from_str("").unwrap();
    let from_json: Config = serde_json::from_str("{}").unwrap();

    assert_eq!(from_toml, Config::default());
    assert_eq!(from_json, Config::default());
}

#[test]
fn durations_are_read_as_people_write_them() {
    let config: Config = toml::from_str(
        r#"
        acquire_timeout = "250ms"
        open_timeout = "30s"
        idle_timeout = "5min"
        max_lifetime = "1h 30m"
        heartbeat_interval = "1 day"
        leak_after = "2m5s"
        check_timeout = "1us"
        "#,
    )
    .unwrap();

    assert_eq!(config.acquire_timeout, Some(Duration::from_millis(250)));
    assert_eq!(config.open_timeout, Some(Duration::from_secs(30)));
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(300)));
    assert_eq!(config.max_lifetime, Some(Duration::from_secs(5400)));
    assert_eq!(config.heartbeat_interval, Some(Duration::from_secs(86400)));
    assert_eq!(config.leak_after, Some(Duration::from_secs(125)));
    assert_eq!(config.check_timeout, Duration::from_micros(1));
}

#[test]
fn json_reads_the_same_durations() {
    let config: Config =
        serde_json::from_str(r#"{ "acquire_timeout": "1h 30m", "close_timeout": "250ms" }"#)
            .unwrap();

    assert_eq!(config.acquire_timeout, Some(Duration::from_secs(5400)));
    assert_eq!(config.close_timeout, Duration::from_millis(250));
}

#[test]
fn off_is_none_for_every_duration_that_may_be_off() {
    let config: Config = toml::from_str(
        r#"
        acquire_timeout = "off"
        open_timeout = "off"
        idle_timeout = "off"
        max_lifetime = "off"
        check_after_idle = "off"
        heartbeat_interval = "off"
        leak_after = "off"
        "#,
    )
    .unwrap();

    let off = Config {
        acquire_timeout: None,
        open_timeout: None,
        idle_timeout: None,
        max_lifetime: None,
        check_after_idle: None,
        heartbeat_interval: None,
        leak_after: None,
        ..Config::default()
    };
    assert_eq!(config, off);
}

#[test]
fn off_is_none_for_every_number_that_may_be_off() {
    let config: Config = toml::from_str("max_uses = \"off\"\nmax_waiters = \"off\"").unwrap();

    assert_eq!((config.max_uses, config.max_waiters), (None, None));
    let text: Config = serde_json::from_str(r#"{ "max_uses": "7", "max_waiters": 0 }"#).unwrap();
    assert_eq!((text.max_uses, text.max_waiters), (Some(7), Some(0)));
    let message = toml_error("max_size = \"off\"");
    assert_says(&message, &["max_size", "\"off\""]);
}

#[test]
fn null_is_none_where_none_is_allowed() {
    let config: Config = serde_json::from_str(
        r#"{ "name": null, "acquire_timeout": null, "max_uses": null, "max_waiters": null }"#,
    )
    .unwrap();

    let none = Config {
        acquire_timeout: None,
        ..Config::default()
    };
    assert_eq!(config, none);
}

#[test]
fn zero_is_read_and_left_to_the_check_in_build() {
    let config: Config = toml::from_str("check_after_idle = \"0s\"").unwrap();

    assert_eq!(config.check_after_idle, Some(Duration::ZERO));
}

#[test]
fn enums_are_read_by_their_snake_case_words() {
    let config: Config = toml::from_str(
        r#"
        on_open_error = "retry"
        idle_order = "oldest"
        nested = "deny"
        warm_up = "best_effort"
        "#,
    )
    .unwrap();

    assert_eq!(config.on_open_error, OnOpenError::Retry);
    assert_eq!(config.idle_order, IdleOrder::Oldest);
    assert_eq!(config.nested, Nested::Deny);
    assert_eq!(config.warm_up, WarmUp::BestEffort);
}

#[test]
fn an_unknown_field_is_refused_by_name_with_those_that_exist() {
    let toml = toml_error("max_sise = 5");
    let json = json_error(r#"{ "max_sise": 5 }"#);

    for message in [toml, json] {
        assert_says(&message, &["unknown field", "max_sise", "`max_size`"]);
    }
}

#[test]
fn a_wrong_word_is_refused_with_those_that_are_allowed() {
    for (line, allowed) in [
        ("on_open_error = \"ignore\"", r#"["fail", "retry"]"#),
        ("idle_order = \"ignore\"", r#"["hot", "oldest"]"#),
        ("nested = \"ignore\"", r#"["allow", "report", "deny"]"#),
        ("warm_up = \"ignore\"", r#"["required", "best_effort"]"#),
    ] {
        let message = toml_error(line);

        assert_says(&message, &["\"ignore\"", line, allowed]);
    }
}

#[test]
fn a_wrong_word_is_refused_in_json_too() {
    let message = json_error(r#"{ "nested": "Deny" }"#);

    assert_says(&message, &["\"Deny\"", r#"["allow", "report", "deny"]"#]);
}

#[test]
fn a_number_without_a_unit_is_no_duration() {
    let toml = toml_error("acquire_timeout = 30");
    let json = json_error(r#"{ "acquire_timeout": 30 }"#);
    let text = json_error(r#"{ "acquire_timeout": "30" }"#);
    let fraction = json_error(r#"{ "acquire_timeout": 0.5 }"#);

    for message in [toml, json, text] {
        assert_says(&message, &["30", "a duration with its unit, like \"30s\""]);
    }
    assert_says(&fraction, &["0.5", "a duration with its unit"]);
}

#[test]
fn a_nonsense_duration_is_refused_with_an_example() {
    for nonsense in [
        "soon",
        "",
        "5 parsecs",
        "s",
        "-5s",
        "OFF",
        "99999999999999999999999s",
        "99999999999999999y",
    ] {
        let toml = toml_error(&format!("acquire_timeout = {nonsense:?}"));
        let json = json_error(&format!(r#"{{ "acquire_timeout": {nonsense:?} }}"#));

        for message in [toml, json] {
            assert_says(
                &message,
                &[&format!("{nonsense:?}"), "a duration with its unit"],
            );
        }
    }
}

#[test]
fn a_value_of_another_kind_is_no_duration() {
    for value in ["true", "[1]", r#"{ "secs": 5, "nanos": 0 }"#] {
        let message = json_error(&format!(r#"{{ "acquire_timeout": {value} }}"#));

        assert_says(&message, &["invalid type", "a duration with its unit"]);
    }
}

#[test]
fn negative_numbers_are_refused_by_value() {
    let duration = toml_error("acquire_timeout = -5");
    let size = toml_error("max_size = -1");
    let uses = json_error(r#"{ "max_uses": -1 }"#);

    assert_says(
        &duration,
        &["acquire_timeout", "-5", "a duration with its unit"],
    );
    assert_says(&size, &["max_size", "-1", "expected usize"]);
    assert_says(&uses, &["-1", "expected a whole number, or \"off\""]);
}

#[test]
fn a_duration_that_cannot_be_off_says_so() {
    for field in REQUIRED {
        let off = toml_error(&format!("{field} = \"off\""));
        let null = json_error(&format!(r#"{{ "{field}": null }}"#));

        assert_says(
            &off,
            &[field, "\"off\"", "expected a duration with its unit"],
        );
        assert_says(&null, &["null", "expected a duration with its unit"]);
    }
}

#[test]
fn a_duration_that_cannot_be_off_does_not_offer_it() {
    for field in REQUIRED {
        let message = toml_error(&format!("{field} = \"soon\""));

        assert_says(&message, &[field, "\"soon\"", "a duration with its unit"]);
        assert!(!message.contains("or \"off\""), "it offers off: {message}");
    }
}

#[test]
fn a_choice_is_a_word_and_the_error_lists_the_words() {
    for value in ["0", "true", "{}", "{ fail = 1 }", "[\"fail\"]"] {
        let message = toml_error(&format!("on_open_error = {value}"));

        assert_says(
            &message,
            &["on_open_error", "one of the words [\"fail\", \"retry\"]"],
        );
    }
    for value in ["0", "null", r#"{ "fail": null }"#] {
        let message = json_error(&format!(r#"{{ "on_open_error": {value} }}"#));

        assert_says(&message, &["one of the words [\"fail\", \"retry\"]"]);
    }
}

#[track_caller]
fn assert_round_trip(config: &Config) {
    let toml = toml::to_string(config).expect("TOML has every setting");
    let json = serde_json::to_string(config).expect("JSON has every setting");

    assert_eq!(toml::from_str(&toml), Ok(config.clone()));
    let read: Config = serde_json::from_str(&json).expect("it was written so");
    assert_eq!(read, *config);
}

#[test]
fn the_defaults_survive_a_round_trip() {
    assert_round_trip(&Config::default());
}

#[test]
fn everything_set_survives_a_round_trip() {
    let config = Config {
        name: Some("orders".to_owned()),
        acquire_timeout: None,
        open_timeout: Some(Duration::new(1, 1)),
        max_lifetime: Some(Duration::from_secs(10 * 365 * 24 * 60 * 60)),
        lifetime_jitter: 1.0 / 3.0,
        max_uses: Some(7),
        max_waiters: Some(0),
        check_after_idle: Some(Duration::ZERO),
        check_on_return: true,
        heartbeat_interval: Some(Duration::from_millis(1500)),
        on_open_error: OnOpenError::Retry,
        idle_order: IdleOrder::Oldest,
        nested: Nested::Allow,
        warm_up: WarmUp::BestEffort,
        ..Config::default()
    };

    assert_round_trip(&config);
}

#[test]
fn durations_are_written_as_people_write_them() {
    let config = Config {
        idle_timeout: Some(Duration::from_secs(90)),
        leak_after: None,
        ..Config::default()
    };

    let toml = toml::to_string(&config).unwrap();

    assert_says(
        &toml,
        &[
            "acquire_timeout = \"5s\"",
            "idle_timeout = \"1m 30s\"",
            "leak_after = \"off\"",
            "on_open_error = \"fail\"",
        ],
    );
}

#[test]
fn a_value_that_was_read_is_still_checked_when_the_pool_is_built() {
    let config: Config = toml::from_str("idle_timeout = \"11years\"").unwrap();

    let built = Pool::from_fn(async || Ok::<_, std::io::Error>(()))
        .config(config)
        .build();

    assert_eq!(built.unwrap_err().field(), "idle_timeout");
}
