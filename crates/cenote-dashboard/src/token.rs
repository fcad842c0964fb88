//! The token that allows actions.

use std::fmt;

use subtle::ConstantTimeEq;

/// Letters that a person does not guess and a program does not try through.
const SHORTEST: usize = 32;

/// The secret that a request must show before it may change a pool.
///
/// It has at least 32 visible ASCII characters, such as the output of `openssl rand -hex 32`. It is
/// compared in constant time, and its `Debug` output hides it.
///
/// ```
/// use cenote_dashboard::Token;
///
/// assert!(Token::new("secret").is_err(), "too short to be one");
/// let token = Token::new("f0e4c2f76c58916ec258f246851bea09")?;
/// assert_eq!(format!("{token:?}"), "Token(hidden)");
/// # Ok::<_, cenote_dashboard::WeakToken>(())
/// ```
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl Token {
    /// Checks a token. It must be able to travel in a header.
    pub fn new(token: impl AsRef<str>) -> Result<Self, WeakToken> {
        let token = token.as_ref();
        if let Some(odd) = token.chars().find(|letter| !letter.is_ascii_graphic()) {
            return Err(WeakToken::Odd(odd));
        }
        match token.len() {
            ..SHORTEST => Err(WeakToken::Short(token.len())),
            _ => Ok(Self(token.as_bytes().into())),
        }
    }

    /// Returns whether they are equal. The time tells at most whether their lengths are.
    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Why a text cannot be a [`Token`], which has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeakToken {
    /// It has this many characters only.
    Short(usize),
    /// It has this character, which is not visible ASCII.
    Odd(char),
}

impl fmt::Display for WeakToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(length) => write!(
                f,
                "the token has {length} characters: use at least {SHORTEST} random ones"
            ),
            Self::Odd(odd) => write!(
                f,
                "the token has the character {odd:?}: use visible ASCII only"
            ),
        }
    }
}

impl std::error::Error for WeakToken {}

#[cfg(test)]
mod tests;
