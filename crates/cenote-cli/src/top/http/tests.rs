//! Addresses as people copy them.

use super::*;

#[test]
fn the_page_and_its_folder_are_the_same_place() {
    let shown = [
        "http://a:1",
        "http://a:1/",
        "http://a:1/live",
        "http://a:1/pools/live?x#3",
    ];

    let shown = shown.map(|url| Site::parse(url).unwrap().shown());

    assert_eq!(shown[..3], ["http://a:1/", "http://a:1/", "http://a:1/"]);
    assert_eq!(shown[3], "http://a:1/pools/");
}

#[test]
fn an_address_without_http_is_refused_with_the_fix() {
    for url in ["https://a/pools", "a:3000", "postgres://a"] {
        let error = Site::parse(url).unwrap_err().to_string();

        assert!(error.contains("must begin with `http://`"), "{error}");
    }
}
