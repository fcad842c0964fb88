//! Results as data.

use serde_json::{Map, Value, json};

use crate::harness::bounded::Trouble;

/// One pool in one scenario on one runtime.
#[derive(Clone, Debug)]
pub struct Line {
    /// `S1` and so on.
    pub scenario: &'static str,
    /// The runtime of the tasks.
    pub runtime: &'static str,
    /// The name of the pool.
    pub pool: &'static str,
    /// The figures in the order of the table, or why there are none.
    pub outcome: Result<Vec<Figure>, Trouble>,
}

/// A name and a number.
pub type Figure = (&'static str, f64);

impl Line {
    /// Returns the figure of that name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let figures = self.outcome.as_ref().ok()?;
        let found = figures.iter().find(|(figure, _)| *figure == name);
        found.map(|(_, value)| *value)
    }

    /// Returns the line for machines.
    pub fn to_json(&self) -> Value {
        let mut line = Map::new();
        line.insert("scenario".into(), json!(self.scenario));
        line.insert("runtime".into(), json!(self.runtime));
        line.insert("pool".into(), json!(self.pool));
        match &self.outcome {
            Ok(figures) => {
                let figures = figures
                    .iter()
                    .map(|(name, value)| ((*name).into(), json!(value)));
                line.insert("figures".into(), Value::Object(figures.collect()));
            }
            Err(trouble) => {
                line.insert("trouble".into(), json!(trouble.to_string()));
            }
        }
        Value::Object(line)
    }
}

/// Returns the figure of this line divided by that of the other pool in the same scenario. Returns
/// `None` if one of them is missing.
pub fn ratio(lines: &[Line], line: &Line, name: &str, pool: &str) -> Option<f64> {
    let other = lines.iter().find(|other| {
        other.pool == pool && other.scenario == line.scenario && other.runtime == line.runtime
    });
    let ratio = line.figure(name)? / other?.figure(name)?;
    ratio.is_finite().then_some(ratio)
}
