//! Text out of pages: pieces between marks, and the text of a piece without its tags.

/// The piece of `text` between the first `from` and the next `to`, and the rest after it.
pub(super) fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<(&'a str, &'a str)> {
    let start = text.find(from)? + from.len();
    let length = text[start..].find(to)?;
    let rest = &text[start + length + to.len()..];
    Some((&text[start..start + length], rest))
}

/// The value of an attribute in the inside of a tag.
pub(super) fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let value = between(tag, &format!("{name}=\""), "\"");
    value.map(|(value, _)| value).unwrap_or_default()
}

/// The text of a piece of a page as it is shown, with its line breaks. What a button says is left
/// out, because it is not part of a declaration.
pub(super) fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let closed = if tag.starts_with("summary") {
            tag.split_once("</summary>")
        } else {
            tag.split_once('>')
        };
        // A `div` begins a line: an attribute of an item, or the bounds of its parameters.
        if tag.starts_with("div") || tag.starts_with("/div") {
            text.push('\n');
        }
        rest = closed.map(|(_, rest)| rest).unwrap_or_default();
    }
    text.push_str(rest);
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#39;", "'");
    let text = text.replace("&nbsp;", " ").replace('ⓘ', "");
    text.replace("&amp;", "&")
}

/// A declaration on one line. How rustdoc breaks lines does not show.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let line = line
        .replace("( ", "(")
        .replace(", )", ")")
        .replace(" )", ")");
    line.replace("< ", "<").replace(", >", ">")
}
