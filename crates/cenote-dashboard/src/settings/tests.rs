//! The table of settings.

use std::time::Duration;

use cenote::Config;

use super::rows;

#[test]
fn settings_come_in_their_order_with_differences_marked() {
    let config = Config {
        name: Some("orders".to_owned()),
        max_size: 20,
        idle_timeout: None,
        leak_after: Some(Duration::from_millis(1_500)),
        ..Config::default()
    };

    let rows = rows(&config);

    let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names[..3], ["max_size", "min_size", "min_idle"]);
    let fields = serde_json::to_value(&config).unwrap();
    let fields = fields.as_object().unwrap().len();
    assert_eq!(
        names.len() + 1,
        fields,
        "every field but the name: {names:?}"
    );
    let changed = rows.iter().filter(|row| row.changed);
    let changed: Vec<_> = changed
        .map(|row| (row.name.as_str(), row.value.as_str(), row.default.as_str()))
        .collect();
    assert_eq!(
        changed,
        [
            ("max_size", "20", "10"),
            ("idle_timeout", "off", "5m"),
            ("leak_after", "1s 500ms", "30s"),
        ]
    );
}
