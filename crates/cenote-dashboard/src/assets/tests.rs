//! What the files of the page may be.

use super::FILES;

#[test]
fn the_page_is_under_100_kib() {
    let bytes: usize = FILES.iter().map(|(_, _, text)| text.len()).sum();

    assert!(bytes < 100 * 1024, "{bytes} bytes");
}

#[test]
fn no_file_is_over_400_lines_or_100_columns() {
    for (name, kind, text) in FILES {
        let lines = text.lines().count();
        assert!(lines <= 400, "{name} has {lines} lines");
        let mut wide = text.lines().filter(|line| line.chars().count() > 100);
        assert!(
            kind == super::SVG || wide.next().is_none(),
            "{name} is wide"
        );
    }
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    for (name, _, text) in FILES {
        let addresses = text.match_indices("://");
        for (place, _) in addresses {
            let from = text[..place].rfind(['"', '\'', ' ', '(']).unwrap_or(0);
            let address = &text[from + 1..];
            assert!(
                address.starts_with("http://www.w3.org/"),
                "{name}: {address:.60}"
            );
        }
    }
}

#[test]
fn no_script_makes_markup_out_of_text() {
    for (name, _, text) in FILES {
        for banned in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "localStorage.token",
            "document.cookie",
            " style=\"",
            " onclick=",
        ] {
            assert!(!text.contains(banned), "{name} has {banned}");
        }
    }
}
