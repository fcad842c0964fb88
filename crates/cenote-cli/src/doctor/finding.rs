//! One finding: how bad it is, what was seen, and what to do.

use serde::Serialize;

use crate::out::{Colour, Paint};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// It was looked at, and it fits.
    Ok,
    /// Worth to know; nothing fails because of it.
    Note,
    /// It fails under load, or some day.
    Warning,
    /// It fails.
    Problem,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    fn colour(self) -> Colour {
        match self {
            Self::Ok => Colour::Green,
            Self::Note => Colour::Blue,
            Self::Warning => Colour::Yellow,
            Self::Problem => Colour::Red,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// What was looked at, in a word or two.
    pub(super) check: &'static str,
    /// What was seen, with its numbers.
    pub(super) evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, evidence: impl Into<String>) -> Self {
        Self {
            severity: Severity::Ok,
            check,
            evidence: evidence.into(),
            fix: None,
        }
    }

    pub(super) fn new(
        severity: Severity,
        check: &'static str,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            check,
            evidence: evidence.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Returns the findings as text, and a line that counts them.
pub(super) fn show(findings: &[Finding], paint: Paint) -> String {
    let width = findings.iter().map(|it| it.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let word = finding.severity.word();
        let word = paint.say(finding.severity.colour(), &format!("{word:<7}"));
        text += &format!("{word}  {:<width$}  {}\n", finding.check, finding.evidence);
        if let Some(fix) = &finding.fix {
            text += &format!("{:<7}  {:<width$}  fix: {fix}\n", "", "");
        }
    }
    let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
    text += &format!(
        "{} problems, {} warnings, {} notes, {} checks passed\n",
        count(Severity::Problem),
        count(Severity::Warning),
        count(Severity::Note),
        count(Severity::Ok),
    );
    text
}
