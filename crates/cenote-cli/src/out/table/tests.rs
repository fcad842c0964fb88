//! Columns are aligned, also where a letter has several bytes.

use super::*;

#[test]
fn numbers_stand_at_the_right_and_words_at_the_left() {
    let mut table = Table::new(&["size", ">time"]);
    table.row(["1".to_owned(), "9 µs".to_owned()]);
    table.row(["16".to_owned(), "1234 µs".to_owned()]);

    let shown = table.show();

    assert_eq!(shown, "  size     time\n  1        9 µs\n  16    1234 µs\n");
}
