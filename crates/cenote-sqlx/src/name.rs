//! A word or a name of SQL in lower case, on the stack.

use std::ops::Deref;

/// Longer names are no keywords and no functions that matter.
const LONGEST: usize = 40;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Default for Name {
    fn default() -> Self {
        Self {
            bytes: [0; LONGEST],
            length: 0,
        }
    }
}

impl Name {
    pub(crate) fn plain(word: &str) -> Self {
        let mut name = Self::default();
        if let Some(bytes) = name.bytes.get_mut(..word.len()) {
            bytes.copy_from_slice(word.as_bytes());
            bytes.make_ascii_lowercase();
            name.length = word.len();
        }
        name
    }

    /// Returns the name between quotes of any kind: `"a"`, `` `a` ``, `[a]` or `U&"\0061"`. Names
    /// that differ only in the case of their letters are taken for the same.
    pub(crate) fn quoted(span: &str) -> Self {
        let coded = span.starts_with(['u', 'U']);
        let inner = if coded { &span[2..] } else { span };
        let mut letters = inner.chars();
        let quote = match letters.next() {
            Some('[') => ']',
            Some(quote) => quote,
            None => return Self::default(),
        };
        let mut name = Self::default();
        while let Some(letter) = letters.next() {
            let letter = match letter {
                _ if letter == quote => match letters.next() {
                    Some(doubled) => doubled,
                    None => return name,
                },
                '\\' if coded => match decode(&mut letters) {
                    Some(letter) => letter,
                    None => return Self::default(),
                },
                letter => letter,
            };
            let end = name.length + letter.len_utf8();
            let Some(place) = name.bytes.get_mut(name.length..end) else {
                return Self::default();
            };
            letter.to_ascii_lowercase().encode_utf8(place);
            name.length = end;
        }
        name
    }
}

/// Decodes an escape of `U&""`, whose backslash was read.
fn decode(letters: &mut std::str::Chars<'_>) -> Option<char> {
    let rest = letters.as_str();
    let (skipped, digits) = match rest.as_bytes().first()? {
        b'\\' => {
            letters.next();
            return Some('\\');
        }
        b'+' => (1, 6),
        _ => (0, 4),
    };
    let code = rest.get(skipped..skipped + digits)?;
    *letters = rest[skipped + digits..].chars();
    char::from_u32(u32::from_str_radix(code, 16).ok()?)
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}
