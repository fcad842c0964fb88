//! What a token may be, and what it matches.

use super::{Token, WeakToken};

const GOOD: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_short_or_odd_token_is_refused_with_the_reason() {
    assert_eq!(Token::new(&GOOD[1..]).unwrap_err(), WeakToken::Short(31));
    let odd = Token::new(format!("{GOOD} ")).unwrap_err();

    assert_eq!(odd, WeakToken::Odd(' '));
    assert!(odd.to_string().contains("visible ASCII"), "{odd}");
    let short = Token::new("").unwrap_err().to_string();
    assert!(short.contains("0 characters: use at least 32"), "{short}");
}

#[test]
fn a_token_matches_itself_only() {
    let token = Token::new(GOOD).unwrap();

    assert!(token.matches(GOOD.as_bytes()));
    for other in ["", &GOOD[1..], &format!("{GOOD}0"), &GOOD.to_uppercase()] {
        assert!(!token.matches(other.as_bytes()), "{other}");
    }
}
