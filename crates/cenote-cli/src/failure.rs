//! Errors that end the program, and the one line that tells them.

use std::error::Error;
use std::fmt;
use std::iter::successors;

/// An error that ends a command. The program only prints it.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How a command that did its work has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// It has found something that should be changed.
    Findings,
    /// The user has ended it before there was a result.
    Interrupted,
}

/// An error in what the user has typed, as opposed to an error of the world.
#[derive(Debug)]
pub(crate) struct Usage(String);

/// Returns an error in what the user has typed.
pub(crate) fn usage(text: impl Into<String>) -> Failure {
    Box::new(Usage(text.into()))
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Returns an error and all its causes in one line. A cause is left out if the text so far contains
/// it.
pub(crate) fn whole_story(error: &(dyn Error + 'static)) -> String {
    let mut story = error.to_string();
    for cause in successors(error.source(), |&error| error.source()) {
        let cause = cause.to_string();
        if !story.contains(&cause) {
            story.push_str(": ");
            story.push_str(&cause);
        }
    }
    one_line(&story)
}

/// Some drivers write errors of several lines.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests;
