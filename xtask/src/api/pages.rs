//! Walks through the pages of a crate, from the page of its root. Pages that no page leads to are
//! of private items or older than the code.

use std::fs;
use std::path::Path;

use super::page;
use super::text::{attribute, between, one_line, plain};

/// The lines of a listing.
pub(super) fn list(doc: &Path, name: &str) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    list_module(&doc.join(name), name, &mut lines)?;
    if lines.len() < 2 {
        return Err(unlike(
            &doc.join(name).join("index.html"),
            "it lists no items",
        ));
    }
    Ok(lines)
}

/// A module, its items, and the modules below it.
fn list_module(folder: &Path, name: &str, lines: &mut Vec<String>) -> Result<(), String> {
    let index = read(&folder.join("index.html"))?;
    lines.push(format!("mod {name}"));
    lines.extend(re_exports(&index).map(|line| format!("    {line}")));
    for Link { kind, href, item } in links(&index) {
        let name = format!("{name}::{item}");
        if kind == "mod" {
            list_module(&folder.join(item), &name, lines)?;
            continue;
        }
        lines.push(format!("{kind} {name}"));
        let path = folder.join(href);
        let found = page::item(&read(&path)?);
        if found.is_empty() {
            return Err(unlike(&path, "it has no declaration"));
        }
        lines.extend(found);
    }
    Ok(())
}

/// A line of the table of a module.
struct Link<'a> {
    kind: &'a str,
    href: &'a str,
    item: &'a str,
}

fn links(index: &str) -> impl Iterator<Item = Link<'_>> {
    index.split("<dt><a ").skip(1).filter_map(|row| {
        let (tag, rest) = row.split_once('>')?;
        let href = attribute(tag, "href");
        // A name that is long has a place where it may be broken, so it is read from the address.
        let item = match attribute(tag, "class") {
            "mod" => href.strip_suffix("/index.html")?,
            _ => href.strip_suffix(".html")?.split_once('.')?.1,
        };
        rest.contains("</dt>").then(|| Link {
            kind: attribute(tag, "class"),
            href,
            item,
        })
    })
}

fn re_exports(index: &str) -> impl Iterator<Item = String> {
    index.split("<dt").skip(1).filter_map(|row| {
        let (_, code) = row.split_once('>')?;
        let code = code.strip_prefix("<code>")?;
        let (code, _) = code.split_once("</code>")?;
        Some(one_line(&plain(code)))
    })
}

fn read(path: &Path) -> Result<String, String> {
    let page = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {} ({error})", path.display()))?;
    // The frame around it has links and headings of its own.
    let main = between(&page, "<section id=\"main-content\"", "</main>");
    let main = main.map(|(main, _)| main.to_owned());
    main.ok_or_else(|| unlike(path, "it has no main part"))
}

fn unlike(path: &Path, seen: &str) -> String {
    format!(
        "{} is not as rustdoc wrote it until now ({seen}): mend xtask/src/api/",
        path.display()
    )
}
