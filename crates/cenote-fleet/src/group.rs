//! The names of groups.

use std::fmt;

/// Returns the name, if it can be part of a tag, of a key and of a subject.
pub(crate) fn named(group: &str) -> Result<String, GroupError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match group.is_empty() || group.len() > 40 || !group.chars().all(is_plain) {
        true => Err(GroupError(group.to_owned())),
        false => Ok(group.to_owned()),
    }
}

/// A group has a name that cannot be part of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError(String);

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(group) = self;
        write!(
            f,
            "the group `{group}` must be 1 to 40 letters, digits, `-` or `_`"
        )
    }
}

impl std::error::Error for GroupError {}
