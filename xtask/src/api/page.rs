//! Reads one page of rustdoc: the declaration of an item, and its implementations.

use super::text::{attribute, between, one_line, plain};

const DECLARATION: &str = "<pre class=\"rust item-decl\"><code>";

/// The lines of an item, indented below its name.
pub(super) fn item(page: &str) -> Vec<String> {
    let mut lines = declaration(page);
    lines.extend(implementations(page));
    lines
}

/// The declaration, and a line for each field, variant or item of a trait.
fn declaration(page: &str) -> Vec<String> {
    let Some((html, _)) = between(page, DECLARATION, "</code></pre>") else {
        return Vec::new();
    };
    let text = plain(html);
    if text.trim_start().starts_with("macro_rules!") {
        return vec![level(1, &text)];
    }
    let Some((head, body)) = text.split_once('{') else {
        return vec![level(1, &text)];
    };
    let body = body.rsplit_once('}').map_or(body, |(body, _)| body);
    let mut lines = vec![level(1, head)];
    lines.extend(members(body).iter().map(|member| level(1, member)));
    lines
}

/// A member begins where a line is indented by four. Deeper lines and closing brackets belong to
/// the member above, and comments such as `// Required method` to none.
fn members(body: &str) -> Vec<String> {
    let mut members: Vec<String> = Vec::new();
    for line in body.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim();
        if code.starts_with("//") {
            continue;
        }
        match members.last_mut() {
            Some(member) if indent > 4 || code.starts_with(['}', ')', '>']) || code == "where" => {
                member.push(' ');
                member.push_str(code);
            }
            _ => members.push(code.to_owned()),
        }
    }
    members
}

/// What is read below a heading of the page.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Methods and constants.
    Own,
    /// Traits of the item, with their associated types.
    Traits,
    /// Types that have this trait.
    Implementors,
    /// What a dereference, the compiler or a blanket implementation gives, and all else.
    Other,
}

impl Part {
    fn below(heading: &str) -> Self {
        match heading {
            "implementations" => Self::Own,
            "trait-implementations" => Self::Traits,
            "implementors" | "foreign-impls" => Self::Implementors,
            _ => Self::Other,
        }
    }

    /// The level of a section of this class in the listing, if it is part of it.
    fn level(self, class: &str) -> Option<usize> {
        match (self, class) {
            (Self::Own | Self::Traits | Self::Implementors, "impl") => Some(1),
            (Self::Own, "method" | "associatedconstant" | "associatedtype") => Some(2),
            (Self::Traits, "associatedtype trait-impl") => Some(2),
            _ => None,
        }
    }
}

fn implementations(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut part = Part::Other;
    for piece in page.split('<').zip(after_each_tag(page)) {
        let (tag, after) = piece;
        if tag.starts_with("h2 ") && attribute(tag, "class").contains("section-header") {
            part = Part::below(attribute(tag, "id"));
        } else if tag.starts_with("section ")
            && let Some(depth) = part.level(attribute(tag, "class"))
            && let Some(text) = code_header(after)
            && !text.starts_with("impl StructuralPartialEq ")
        {
            lines.push(level(depth, &text));
        }
    }
    lines
}

/// For each piece of `page.split('<')`, the page from there on.
fn after_each_tag(page: &str) -> impl Iterator<Item = &str> {
    let tags = page.match_indices('<').map(|(at, _)| &page[at + 1..]);
    std::iter::once(page).chain(tags)
}

/// The line of code at the top of a section.
fn code_header(section: &str) -> Option<String> {
    let (section, _) = section.split_once("</section>")?;
    let (_, header) = section.split_once("class=\"code-header\">")?;
    let end = header.rfind("</h")?;
    Some(one_line(&plain(&header[..end])))
}

fn level(depth: usize, text: &str) -> String {
    format!("{}{}", "    ".repeat(depth), one_line(text))
}
