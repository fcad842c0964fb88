//! URLs lead to the right driver, or to an error that says what to do.

use super::*;

#[test]
fn a_path_is_a_file_of_sqlite() {
    for url in [
        "shop.db",
        "./data/shop.db",
        "sqlite://shop.db",
        "file:shop.db",
        ":memory:",
    ] {
        assert_eq!(Target::parse(url).unwrap(), Target::Sqlite(url.to_owned()));
    }
}

#[test]
fn an_unknown_scheme_names_those_that_are_known() {
    let error = Target::parse("oracle://db/shop").unwrap_err().to_string();

    assert!(error.starts_with("no driver for `oracle://`"), "{error}");
    assert!(
        error.contains("postgres://") && error.contains("redis://"),
        "{error}"
    );
}

#[test]
fn a_host_without_a_scheme_is_refused_with_the_schemes() {
    let error = Target::parse("localhost:5432").unwrap_err().to_string();

    assert!(error.contains("has no scheme"), "{error}");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn an_unknown_scheme_names_the_feature_that_has_it() {
    let error = Target::parse("postgres://db/shop").unwrap_err().to_string();

    assert!(error.contains("`--features postgres`"), "{error}");
    assert!(error.contains("`--features full`"), "{error}");
}

#[test]
fn no_password_is_shown() {
    let shown = [
        "postgres://app:secret@db:5432/shop",
        "postgres://app:p@ss@db/shop?a=b@c",
        "redis://:secret@db",
        "postgres://app@db/shop",
        "shop.db",
    ];

    let shown = shown.map(without_password);

    assert_eq!(
        shown,
        [
            "postgres://app:***@db:5432/shop",
            "postgres://app:***@db/shop?a=b@c",
            "redis://:***@db",
            "postgres://app@db/shop",
            "shop.db",
        ]
    );
}
