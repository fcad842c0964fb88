//! The parts of the page's JSON that are shown. Other fields are ignored.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::out::{Table, short_time, thousands};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Overview {
    pub(crate) pools: Vec<PoolRow>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PoolRow {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(super) health: HealthRow,
    pub(super) breaker: String,
    pub(super) max_size: usize,
    pub(super) in_use: usize,
    pub(super) idle: usize,
    pub(super) opening: usize,
    pub(super) waiting: usize,
    pub(super) oldest_wait_ms: Option<f64>,
    pub(super) acquired: u64,
    pub(super) timed_out: u64,
    pub(super) leaked: u64,
    #[serde(default, skip_serializing)]
    history: History,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct HealthRow {
    pub(super) verdict: String,
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct History {
    acquired_per_second: Vec<f64>,
}

/// The titles of the table, with `>` before those of numbers.
pub(super) const TITLES: [&str; 11] = [
    "pool",
    "health",
    ">size",
    ">in use",
    ">idle",
    ">opening",
    ">waiting",
    ">longest wait",
    ">per second",
    ">timed out",
    ">leaked",
];

impl PoolRow {
    pub(super) fn cells(&self) -> [String; 11] {
        let wait = self
            .oldest_wait_ms
            .map(|millis| Duration::from_secs_f64(millis / 1e3));
        let rate = self
            .history
            .acquired_per_second
            .last()
            .copied()
            .unwrap_or(0.0);
        let health = match self.breaker.as_str() {
            "active" => self.health.verdict.clone(),
            breaker => format!("{}, breaker {breaker}", self.health.verdict),
        };
        [
            self.name.clone(),
            health,
            self.max_size.to_string(),
            self.in_use.to_string(),
            self.idle.to_string(),
            self.opening.to_string(),
            self.waiting.to_string(),
            wait.map_or("-".to_owned(), short_time),
            thousands(rate as u64),
            thousands(self.timed_out),
            thousands(self.leaked),
        ]
    }
}

impl Overview {
    pub(super) fn to_text(&self) -> String {
        let mut table = Table::new(&TITLES);
        for pool in &self.pools {
            table.row(pool.cells());
        }
        table.show()
    }
}

/// What is shown of the chosen pool.
#[cfg(feature = "top")]
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Detail {
    pub(super) holders: Vec<HolderRow>,
    pub(super) advice: Vec<String>,
}

#[cfg(feature = "top")]
#[derive(Clone, Debug, Deserialize)]
pub(super) struct HolderRow {
    pub(super) site: Option<String>,
    pub(super) label: Option<String>,
    pub(super) count: usize,
    pub(super) longest_ms: f64,
}
