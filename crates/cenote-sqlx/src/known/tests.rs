//! Texts are remembered, and not too many of them.

use super::{KNOWN, LONGEST, MOST, reading};
use crate::lexer::Language;
use crate::reading::Reading;

fn remembered() -> usize {
    let known = KNOWN[Language::Sqlite as usize].read().unwrap();
    known.as_ref().map_or(0, |known| known.len())
}

#[test]
fn a_text_is_read_once_and_the_number_of_texts_is_limited() {
    let sql = "SELECT 'remembered'";
    let first = reading(Language::Sqlite, sql);
    assert_eq!(first, Reading::new(Language::Sqlite, sql));
    assert_eq!(remembered(), 1);
    assert_eq!(reading(Language::Sqlite, sql), first);
    assert_eq!(remembered(), 1);

    reading(Language::Sqlite, &"-".repeat(LONGEST + 1));
    assert_eq!(remembered(), 1, "long texts are not kept");
    for nth in 0..3 * MOST {
        reading(Language::Sqlite, &format!("SELECT {nth}"));
        assert!(remembered() <= MOST);
    }
}
