//! The label of a lease: the text of its statement.

use cenote::scope::Scope;

/// The length of a label, in characters.
const LABEL: usize = 120;

/// Returns the statement as a label: one line, cut off. Parameters are not part of the text.
pub(crate) fn label(sql: &str) -> String {
    let mut label = String::with_capacity(sql.len().min(LABEL) + 3);
    let mut taken = 0;
    for word in sql.split_whitespace() {
        if taken > 0 {
            label.push(' ');
        }
        for letter in word.chars() {
            if taken >= LABEL {
                label.truncate(label.trim_end().len());
                label.push('…');
                return label;
            }
            label.push(letter);
            taken += 1;
        }
        taken += 1;
    }
    label
}

/// Returns the label of a lease that runs this statement: the label of the caller's scope, and the
/// statement.
pub(crate) fn in_scope(sql: &str) -> String {
    let statement = label(sql);
    match Scope::current().and_then(|scope| scope.label()) {
        Some(purpose) => format!("{purpose}: {statement}"),
        None => statement,
    }
}
