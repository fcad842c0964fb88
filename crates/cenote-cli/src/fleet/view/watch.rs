//! A fleet over time: what it was at each look, and what has changed.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use cenote_fleet::engine::Engine;
use serde::Serialize;
use tokio::time::sleep;

use super::data::Fleet;
use super::reader::Reader;
use crate::args::FleetArgs;
use crate::clock::now;
use crate::failure::{Failure, Verdict};
use crate::out;

/// How often the cell is read. A share moves in about as much time.
pub(super) const PACE: Duration = Duration::from_millis(500);

/// Five minutes.
const MOST: usize = 600;

/// One look at a fleet.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Look {
    /// Milliseconds since the program was started.
    at_ms: u64,
    pub(super) granted: u32,
    wanted: u32,
    sessions: Option<u32>,
    members: usize,
}

/// What has changed between two looks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told {
    at_ms: u64,
    pub(super) text: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Watch {
    #[serde(flatten)]
    pub(super) fleet: Fleet,
    pub(super) history: VecDeque<Look>,
    pub(super) changes: VecDeque<Told>,
    #[serde(skip)]
    began: Instant,
}

pub(in crate::fleet) async fn run<E: Engine>(
    args: &FleetArgs,
    mut reader: Reader<E>,
) -> Result<Verdict, Failure> {
    let mut watch = Watch::new(reader.read().await?);
    let is_live = !args.json && !args.once && args.seconds == 0 && io::stdout().is_terminal();
    if is_live {
        live(args, reader, watch).await?;
        return Ok(Verdict::Fine);
    }
    let end = Duration::from_secs(args.seconds);
    while watch.began.elapsed() < end {
        sleep(PACE).await;
        watch.add(reader.read().await?);
    }
    match args.json {
        true => out::print_json(&watch)?,
        false => out::print(&watch.to_text())?,
    }
    Ok(Verdict::Fine)
}

#[cfg(feature = "top")]
async fn live<E: Engine>(args: &FleetArgs, reader: Reader<E>, watch: Watch) -> Result<(), Failure> {
    super::screen::run(&args.url, reader, watch).await
}

#[cfg(not(feature = "top"))]
async fn live<E>(_: &FleetArgs, _: Reader<E>, _: Watch) -> Result<(), Failure> {
    Err(crate::failure::usage(
        "the full-screen view is not built in: build with `--features top` or `--features full`, or \
         use `--once`",
    ))
}

impl Watch {
    fn new(fleet: Fleet) -> Self {
        let mut watch = Self {
            fleet: fleet.clone(),
            history: VecDeque::new(),
            changes: VecDeque::new(),
            began: now(),
        };
        watch.add(fleet);
        watch
    }

    /// Takes another look.
    pub(super) fn add(&mut self, fleet: Fleet) {
        let at_ms = self.began.elapsed().as_millis();
        let at_ms = u64::try_from(at_ms).unwrap_or(u64::MAX);
        let changes = fleet.status.changes_since(&self.fleet.status);
        let told = changes.iter().map(|change| Told {
            at_ms,
            text: change.to_string(),
        });
        self.changes.extend(told);
        self.history.push_back(Look {
            at_ms,
            granted: fleet.granted,
            wanted: fleet.wanted,
            sessions: fleet.sessions,
            members: fleet.members.len(),
        });
        while self.history.len() > MOST {
            self.history.pop_front();
        }
        while self.changes.len() > MOST {
            self.changes.pop_front();
        }
        self.fleet = fleet;
    }

    fn to_text(&self) -> String {
        let mut text = self.fleet.to_text();
        for told in &self.changes {
            text += &format!("{told}\n");
        }
        text
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.at_ms as f64 / 1e3;
        write!(f, "after {seconds:.1} s: {}", self.text)
    }
}
