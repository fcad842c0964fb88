//! What became of one request, and how a process tells it to another.

/// A request of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    /// When it should have begun, in seconds of the clock of all processes.
    pub(crate) at: f64,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The statement has succeeded so many seconds after the request should have begun.
    Served(f64),
    /// The caller got an error.
    Failed,
    /// Too many requests were under way, so it was not begun.
    Shed,
}

impl Event {
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.outcome, Outcome::Served(_))
    }

    pub(crate) fn to_line(self) -> String {
        match self.outcome {
            Outcome::Served(took) => format!("{:.6} served {took:.6}", self.at),
            Outcome::Failed => format!("{:.6} failed", self.at),
            Outcome::Shed => format!("{:.6} shed", self.at),
        }
    }

    /// Returns `None` for any other line.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (at, outcome) = line.split_once(' ')?;
        let outcome = match outcome.split_once(' ') {
            Some(("served", took)) => Outcome::Served(took.parse().ok()?),
            None if outcome == "failed" => Outcome::Failed,
            None if outcome == "shed" => Outcome::Shed,
            _ => return None,
        };
        let at = at.parse().ok()?;
        Some(Self { at, outcome })
    }
}
