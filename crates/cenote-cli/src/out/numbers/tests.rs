//! Numbers and times, as they are shown.

use super::*;

#[test]
fn numbers_have_thousands_separators() {
    let shown = [0, 999, 1_000, 1_234_567].map(thousands);

    assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn times_have_three_digits_and_a_unit() {
    let shown = [0, 999, 1_000, 12_345, 999_000, 2_500_000].map(Duration::from_micros);

    let shown = shown.map(short_time);

    assert_eq!(
        shown,
        [
            "0.00 µs", "999 µs", "1.00 ms", "12.3 ms", "999 ms", "2.50 s"
        ]
    );
}
