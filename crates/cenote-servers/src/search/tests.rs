//! The search when the environment names no server. A private Redis plays the server on the
//! standard port.

use std::io;

use super::{Found, Kind};
use crate::redis;

/// Returns a kind like [`redis::KIND`] with another standard place and a variable that is not set.
fn kind(standard: &str) -> Kind {
    Kind {
        variable: "CENOTE_TEST_OF_THE_SEARCH",
        standard: standard.to_owned().leak(),
        ..redis::KIND
    }
}

#[test]
fn a_server_that_lets_us_in_is_taken_as_it_is() {
    let server = redis::start().unwrap();

    let found = Found::search(&kind(server.url())).unwrap();

    assert_eq!(found.url(), server.url());
    assert!(found.private().is_none());
    assert_eq!(found.to_string(), "Redis: on its standard port");
}

#[test]
fn without_an_answer_a_private_server_is_started() {
    let mut server = redis::start().unwrap();
    server.stop().unwrap();

    let found = Found::search(&kind(server.url())).unwrap();

    let private = found.private().expect("it was started");
    assert_eq!(found.url(), private.url());
    assert_ne!(found.url(), server.url());
    assert!(found.to_string().contains("refused"), "{found}");
}

#[test]
fn a_server_that_asks_for_a_password_is_left_alone() {
    let server = redis::start_with(&[("requirepass", "secret")]).unwrap();

    let found = Found::search(&kind(server.url())).unwrap();

    assert!(found.private().is_some());
    assert!(found.to_string().contains("asks for a password"), "{found}");
}

#[test]
fn a_server_that_cannot_be_got_is_an_error_that_says_how_to_get_it() {
    let nowhere = Kind {
        start: || Err(io::Error::other("`redis-server` is not installed")),
        ..kind("redis://127.0.0.1:1")
    };

    let error = Found::search(&nowhere).unwrap_err().to_string();

    for part in [
        "no Redis",
        "CENOTE_TEST_OF_THE_SEARCH",
        "127.0.0.1:1",
        "not installed",
    ] {
        assert!(error.contains(part), "{error}");
    }
}
