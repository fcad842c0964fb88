//! Which texts set the same.

use super::*;

#[test]
fn a_text_replaces_one_that_sets_the_same_and_no_other() {
    let settings = Settings::new(vec![String::from("SET a = 1"), String::from("SET b=1")]);
    let texts = |sql: &str| {
        settings.set(sql.to_owned());
        settings.texts().join("; ")
    };

    assert_eq!(texts("set  A=2"), "set  A=2; SET b=1");
    assert_eq!(texts("SET a TO 3"), "SET a TO 3; SET b=1");
    assert_eq!(
        texts("SET b = 2, c = 3"),
        "SET a TO 3; SET b=1; SET b = 2, c = 3"
    );
    assert_eq!(
        texts("SET b = 2, c = 3"),
        "SET a TO 3; SET b=1; SET b = 2, c = 3"
    );
    assert_eq!(settings.version(), 4);
}
