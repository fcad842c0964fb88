//! What the suite has found.

use std::fmt;

/// A check that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The name of the check, such as `detects death`.
    pub check: &'static str,
    /// What was seen.
    pub text: String,
}

/// All checks that have failed, in the order in which they ran. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures(pub(super) Vec<Failure>);

impl Failures {
    /// Returns the failures in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.0.iter()
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the manager breaks promises:")?;
        for Failure { check, text } in &self.0 {
            write!(f, "\n- {check}: {text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failures {}
