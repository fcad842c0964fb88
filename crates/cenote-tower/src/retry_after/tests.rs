//! The header, over many tries.

use super::*;

#[test]
fn an_estimate_is_spread_and_a_given_value_is_not() {
    let header = |after: RetryAfter| {
        let header = after.header(RETRY_AFTER_DEFAULT)?;
        header.to_str().unwrap().parse::<u64>().ok()
    };
    let after = Duration::from_millis(9_500);

    for _ in 0..200 {
        assert_eq!(header(RetryAfter::Exactly(after)), Some(10));
        assert!((10..=15).contains(&header(RetryAfter::About(after)).unwrap()));
        assert!((1..=3).contains(&header(RetryAfter::Unset).unwrap()));
        assert_eq!(header(RetryAfter::Never), None);
    }
    let all: std::collections::HashSet<_> = (0..200).map(|_| header(RetryAfter::Unset)).collect();
    assert_eq!(all.len(), 3, "all of them come up");
}
