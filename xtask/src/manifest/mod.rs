//! Reads the entries of a `Cargo.toml`, line by line.
//! Not a TOML parser: in our manifests each entry is one line.

#[cfg(test)]
mod tests;

/// `key = value # comment`, and its table. Lines that only continue a value are left out.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) line: usize,
    pub(crate) table: &'a str,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
    pub(crate) comment: &'a str,
}

impl<'a> Entry<'a> {
    /// The name of the crate in a table of dependencies.
    pub(crate) fn dependency(&self) -> &'a str {
        self.key.trim_end_matches(".workspace")
    }
}

pub(crate) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut table = "";
    for (index, whole) in text.lines().enumerate() {
        let (code, comment) = split_comment(whole, "#");
        if let Some(header) = code.trim_end().strip_prefix('[') {
            table = header.trim_matches(['[', ']']);
        } else if code.starts_with(|first: char| first.is_alphanumeric() || first == '"')
            && let Some((key, value)) = code.split_once('=')
        {
            entries.push(Entry {
                line: index + 1,
                table,
                key: key.trim().trim_matches('"'),
                value: value.trim(),
                comment: comment.trim(),
            });
        }
    }
    entries
}

pub(crate) fn package_name(text: &str) -> Option<&str> {
    package_value(text, "name")
}

/// A value of the table `package` without its quotes: of `key`, or `true` for `key.workspace`.
pub(crate) fn package_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut entries = entries(text).into_iter();
    let entry = entries.find(|entry| {
        entry.table == "package" && entry.key.trim_end_matches(".workspace") == key
    })?;
    Some(entry.value.trim_matches('"'))
}

/// Returns whether a crate goes to the registry.
pub(crate) fn is_published(text: &str) -> bool {
    package_name(text).is_some() && package_value(text, "publish") != Some("false")
}

/// The features that a user can name, without `default`: those of the table, and the optional
/// dependencies that no `dep:` hides.
pub(crate) fn features(text: &str) -> Vec<&str> {
    let names_one = |entry: &Entry<'_>| match entry.table {
        "features" => entry.key != "default",
        table if table.ends_with("dependencies") => {
            entry.value.contains("optional = true")
                && !text.contains(&format!("\"dep:{}\"", entry.key))
        }
        _ => false,
    };
    let entries = entries(text).into_iter();
    entries.filter(names_one).map(|entry| entry.key).collect()
}

/// The dependencies of a crate and of its tests, without those by path: a published manifest has
/// these alone.
pub(crate) fn versioned_dependencies(text: &str) -> Vec<&str> {
    let entries = entries(text).into_iter();
    let versioned = entries
        .filter(|entry| entry.table.ends_with("dependencies") && !entry.value.contains("path = "));
    versioned.map(|entry| entry.dependency()).collect()
}

/// Returns a line without its comment, and the comment without its mark. A mark in quotes is text.
pub(crate) fn split_comment<'a>(line: &'a str, mark: &str) -> (&'a str, &'a str) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, letter) in line.char_indices() {
        if !quoted && line[at..].starts_with(mark) {
            return (&line[..at], &line[at + mark.len()..]);
        }
        // The character literal `'"'` opens no string.
        let lone = line[..at].ends_with('\'') && line[at + letter.len_utf8()..].starts_with('\'');
        if letter == '"' && !escaped && !lone {
            quoted = !quoted;
        }
        escaped = quoted && letter == '\\' && !escaped;
    }
    (line, "")
}
