//! How tidy reads Rust: comments, literals and tests.

use super::super::source::{Line, read, shipped_code};

#[test]
fn code_is_told_from_comments_and_literals() {
    let lines = read("a(\"// b\"); // c\n/* d\n\" e */ f('\"', 'g', r#\"h\"\"#); // i\n'static");

    let code: Vec<&str> = lines.iter().map(|line| line.code.as_str()).collect();
    let comments: Vec<&str> = lines.iter().map(|line| line.comment.trim()).collect();
    assert_eq!(code, ["a(\"\"); ", "", " f('', '', r#\"\"); ", "'static"]);
    assert_eq!(comments, ["c", "d", "\" e * i", ""]);
}

#[test]
fn a_string_over_several_lines_is_code() {
    let lines = read("say(\n    \"one \\\n     two // three\n    \",\n);\n");

    assert!(lines.iter().all(Line::has_code), "{lines:?}");
    assert!(
        lines.iter().all(|line| line.comment.is_empty()),
        "{lines:?}"
    );
    let strings: Vec<bool> = lines.iter().map(|line| line.has_string).collect();
    assert_eq!(strings, [false, true, true, true, false]);
}

#[test]
fn items_for_tests_are_tests_and_their_neighbours_are_not() {
    let text = "
struct Slot {
    state: State,
    #[cfg(test)]
    pub(crate) seen: Vec<(u8, u8)>,
    kept: u8,
}
#[cfg(all(test, not(cenote_model)))]
#[expect(dead_code, reason = \"one; two\")]
fn seen<T, U>(it: [T; 2]) {
    drop(it);
}
#[cfg(any(test, feature = \"_sound\"))]
fn assert_sound() {}
#[cfg(not(test))]
fn serve() {
    #[cfg(test)]
    if is_watched() {
        return;
    }
    act();
}
#[cfg(test)]
mod tests;
fn last() {}
#[cfg(test)]
mod inline {
    fn one() {}
}
";

    let code = shipped_code(text);
    let code: Vec<&str> = code.lines().map(str::trim).collect();
    let code: Vec<&str> = code.into_iter().filter(|line| !line.is_empty()).collect();
    let shipped = [
        "struct Slot {",
        "state: State,",
        "kept: u8,",
        "}",
        "#[cfg(any(test, feature = \"\"))]",
        "fn assert_sound() {}",
        "#[cfg(not(test))]",
        "fn serve() {",
        "act();",
        "}",
        "fn last() {}",
    ];
    assert_eq!(code, shipped);
}
