//! Hides what looks like a credential in a text that the page shows: errors, labels and messages
//! come from code that this crate does not know.

/// Longer texts are cut, so that a page stays a page and the list of events stays small.
const LONGEST: usize = 300;

/// Longer texts are not even read. The rest is far behind the cut.
const READ: usize = 4 * LONGEST;

const HIDDEN: &str = "***";

/// Names of values that are hidden after `=`, and also after `:` if they are among the first four.
const SECRETS: [&str; 9] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "authorization",
];

/// Returns the text without passwords of URLs, without values whose names say that they are secret,
/// and without all that follows after some hundred letters.
pub(crate) fn redact(text: &str) -> String {
    let read = cut(text, READ);
    let hidden = hide_values(&hide_users(read));
    let short = cut(&hidden, LONGEST);
    match short.len() == hidden.len() && read.len() == text.len() {
        true => hidden,
        false => format!("{short}…"),
    }
}

/// Hides the user and the password in URLs. A password may contain any letter but a blank.
fn hide_users(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(|letter: char| letter.is_whitespace() || "\"'`".contains(letter));
        let (url, behind) = after.split_at(end.unwrap_or(after.len()));
        shown.push_str(before);
        shown.push_str("://");
        match url.rsplit_once('@') {
            Some((_, host)) => shown.extend([HIDDEN, "@", host]),
            None => shown.push_str(url),
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// Hides the values of names that end in one of [`SECRETS`], and what follows `Bearer`.
fn hide_values(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((start, end)) = next_value(&lower, at) {
        shown.push_str(&text[at..start]);
        shown.push_str(HIDDEN);
        at = end;
    }
    shown.push_str(&text[at..]);
    shown
}

/// Returns where the next value begins and ends. `lower` has only its ASCII letters changed, so its
/// places are those of the text.
fn next_value(lower: &str, from: usize) -> Option<(usize, usize)> {
    let values = SECRETS.iter().enumerate().flat_map(|(nth, name)| {
        let places = lower[from..].match_indices(name);
        places.filter_map(move |(place, _)| {
            let behind = from + place + name.len();
            value_behind(lower, behind, nth < 4)
        })
    });
    let bearers = lower[from..].match_indices("bearer ").map(|(place, word)| {
        let start = from + place + word.len();
        (start, end_of(lower, start))
    });
    let all = values.chain(bearers);
    all.filter(|(start, end)| start < end).min()
}

fn value_behind(lower: &str, behind: usize, colon: bool) -> Option<(usize, usize)> {
    let rest = lower[behind..].trim_start_matches(['"', '\'', ' ']);
    let rest = match rest.strip_prefix('=') {
        Some(rest) => rest,
        None if colon => rest.strip_prefix(':')?,
        None => return None,
    };
    let value = rest.trim_start_matches(['"', '\'', ' ']);
    let start = lower.len() - value.len();
    Some((start, end_of(lower, start)))
}

fn end_of(lower: &str, start: usize) -> usize {
    let ends = |letter: char| letter.is_whitespace() || "\"',;&)}]".contains(letter);
    let length = lower[start..].find(ends);
    length.map_or(lower.len(), |length| start + length)
}

/// Cuts between two letters.
fn cut(text: &str, longest: usize) -> &str {
    match text.char_indices().nth(longest) {
        Some((place, _)) => &text[..place],
        None => text,
    }
}

#[cfg(test)]
mod tests;
