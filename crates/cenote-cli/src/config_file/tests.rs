//! Wrong settings are named with their field, their value and what is allowed.

use super::*;

fn toml(text: &str) -> Result<Config, String> {
    parse(Path::new("pool.toml"), text)
}

#[test]
fn a_field_that_does_not_exist_is_named_with_its_line() {
    let error = toml("max_size = 4\nmax_sise = 5\n").unwrap_err();

    assert!(error.starts_with("line 2: "), "{error}");
    assert!(error.contains("max_sise"), "{error}");
}

#[test]
fn json_and_toml_mean_the_same() {
    let from_json = parse(Path::new("pool.json"), r#"{"max_lifetime": "1h"}"#).unwrap();

    assert_eq!(from_json, toml("max_lifetime = '1h'").unwrap());
}

#[test]
fn a_value_out_of_range_is_named_with_the_range() {
    let error = try_out(toml("max_size = 2\nmin_size = 3").unwrap()).unwrap_err();

    assert_eq!(
        error.to_string(),
        "`min_size` is 3, allowed: 0 to `max_size` (2)"
    );
}
