//! The files of the page. They are part of the program, so that the page needs no other server and
//! no folder.

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($kind:ident $name:literal)*) => {
        [$(($name, $kind, include_str!(concat!("../assets/", $name)))),*]
    };
}

/// The name, the type and the text of each file.
const FILES: [(&str, &str, &str); 18] = files! {
    HTML "live.html"
    SVG "icon.svg"
    CSS "theme.css"
    CSS "base.css"
    CSS "overview.css"
    CSS "pool.css"
    SCRIPT "main.js"
    SCRIPT "stream.js"
    SCRIPT "dom.js"
    SCRIPT "format.js"
    SCRIPT "theme.js"
    SCRIPT "overview.js"
    SCRIPT "pool.js"
    SCRIPT "slots.js"
    SCRIPT "tables.js"
    SCRIPT "chart.js"
    SCRIPT "actions.js"
    SCRIPT "fleet.js"
};

/// Returns the type and the text of a file.
pub(crate) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let mut files = FILES.iter();
    let (_, kind, text) = files.find(|(file, ..)| *file == name)?;
    Some((kind, text))
}

#[cfg(test)]
mod tests;
