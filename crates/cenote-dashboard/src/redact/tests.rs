//! Which texts are hidden, and which stay.

use super::{LONGEST, redact};

#[test]
fn users_and_passwords_of_urls_are_hidden() {
    for (text, shown) in [
        (
            "cannot reach postgres://app:hunter2@db:5432/x",
            "cannot reach postgres://***@db:5432/x",
        ),
        ("redis://:p@ss/word@cache", "redis://***@cache"),
        (
            "'amqp://u:p@a' and https://token@b/c",
            "'amqp://***@a' and https://***@b/c",
        ),
        ("http://localhost:3000/a", "http://localhost:3000/a"),
    ] {
        assert_eq!(redact(text), shown);
    }
}

#[test]
fn values_with_a_secret_name_are_hidden() {
    for (text, shown) in [
        (
            "host=db password=hunter2 user=app",
            "host=db password=*** user=app",
        ),
        ("DB_PASSWORD = 'hunter2'", "DB_PASSWORD = '***'"),
        (
            "{\"secret\": \"s3\", \"a\": 1}",
            "{\"secret\": \"***\", \"a\": 1}",
        ),
        ("?api_key=abc&page=2", "?api_key=***&page=2"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("pwd=x;token=y", "pwd=***;token=***"),
    ] {
        assert_eq!(redact(text), shown);
    }
}

#[test]
fn ordinary_texts_stay_as_they_are() {
    for text in [
        "password authentication failed for user \"app\"",
        "syntax error: unexpected token: FROM",
        "connection refused (os error 111)",
        "Überlauf: größer als 3",
        "",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_long_text_is_cut_between_two_letters() {
    let shown = redact(&"ü".repeat(100_000));

    assert_eq!(shown.chars().count(), LONGEST + 1);
    assert!(shown.ends_with('…'));
}

#[test]
fn a_cut_does_not_uncover_a_password() {
    for length in LONGEST - 40..LONGEST + 10 {
        let text = format!("{}://app:hunter2@db", "x".repeat(length));

        assert!(!redact(&text).contains("hunter"), "{length}");
    }
}
