//! Sizes as people write them.

use super::*;

#[test]
fn a_size_a_list_and_a_range_are_read() {
    let read = |text| parse(Some(text), 10).unwrap();

    assert_eq!(read("8"), [8]);
    assert_eq!(read("16, 4,8,4"), [4, 8, 16]);
    assert_eq!(read("4..8"), [4, 5, 6, 7, 8]);
    assert_eq!(read("4..=6"), [4, 5, 6]);
}

#[test]
fn a_long_range_is_a_dozen_sizes_with_its_ends_and_the_recorded_one() {
    let sizes = parse(Some("4..400"), 11).unwrap();

    assert!(sizes.len() <= 13, "{sizes:?}");
    assert_eq!((sizes.first(), sizes.last()), (Some(&4), Some(&400)));
    assert!(sizes.contains(&11) && sizes.is_sorted(), "{sizes:?}");
}

#[test]
fn without_a_text_the_sizes_are_around_the_recorded_one() {
    assert_eq!(parse(None, 1).unwrap(), [1, 2, 3, 4]);

    let sizes = parse(None, 10).unwrap();
    assert_eq!((sizes[0], sizes.last()), (2, Some(&40)));
}

#[test]
fn other_texts_are_refused_with_the_fix() {
    for (text, fix) in [
        ("40..4", "write `4..40`"),
        ("0..3", "at least one"),
        ("3,0", "at least one"),
        ("many", "`4..40`"),
        ("4..", "`4..40`"),
        ("-1", "`4..40`"),
        ("4..1000000", "above 10000"),
    ] {
        let error = parse(Some(text), 10).unwrap_err().to_string();
        assert!(error.contains(fix) && error.contains(text), "{error}");
    }
}
