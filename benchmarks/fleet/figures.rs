//! The figures of one play.

use std::collections::BTreeSet;

use cenote_benchmarks::harness::stats::percentile;
use serde::{Deserialize, Serialize};

use crate::event::{Event, Outcome};
use crate::observer::Seen;
use crate::play::{Story, Stretch, What};

/// A busy process has what it needs when this part of its requests is served.
const ENOUGH: f64 = 0.9;

/// So many seconds of requests must be served to that part.
const WINDOW: f64 = 0.5;

/// The seconds of one point of the plot.
pub(crate) const POINT: f64 = 0.25;

/// The figures of one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) system: String,
    pub(crate) share_is_fixed: bool,
    /// The load of the machine in the last minute of the play.
    pub(crate) load: String,
    /// The requests of the busy process that were served, per second, in the second half of the
    /// first stretch.
    pub(crate) goodput: f64,
    /// The time from the intended beginning of these requests to their end.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// The same as `goodput`, while the process asks for more than the capacity.
    pub(crate) full_goodput: f64,
    pub(crate) seen: Seen,
    /// The sessions that the server has refused.
    pub(crate) refused: usize,
    /// The requests of all processes that have ended with an error.
    pub(crate) failed: usize,
    /// Some texts of these errors.
    pub(crate) errors: BTreeSet<String>,
    /// After each move of the load, and after each kill.
    pub(crate) moves: Vec<After>,
    pub(crate) kills: Vec<After>,
    /// When each stretch began, in seconds since the first.
    pub(crate) stretches: Vec<f64>,
    /// For each process, the requests per second that were done, at each point of the plot.
    pub(crate) done: Vec<Vec<f64>>,
}

/// How the process is served that has become busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct After {
    /// The requests per second that were served in the first second.
    pub(crate) first_second: f64,
    /// The seconds until it has what it needs. `None` if it never had.
    pub(crate) reached: Option<f64>,
}

impl After {
    fn of(events: &[Event], stretch: &Stretch) -> Self {
        Self {
            first_second: Steady::of(events, stretch.from, stretch.from + 1.0).per_second(),
            reached: reached(events, stretch).map(rounded),
        }
    }
}

impl Figures {
    pub(crate) fn of(story: &Story) -> Self {
        let events = |stretch: &Stretch| &story.heard[stretch.busy].events[..];
        let find = |what| {
            let mut stretches = story.stretches.iter();
            stretches.find(|stretch| stretch.what == what)
        };
        let steady = |what| {
            let stretch = find(what)?;
            let half = (stretch.from + stretch.to) / 2.0;
            Some(Steady::of(events(stretch), half, stretch.to))
        };
        let (busy, full) = (steady(What::Busy), steady(What::Full));
        let after = |what| {
            let stretches = story.stretches.iter();
            let stretches = stretches.filter(|stretch| stretch.what == what);
            stretches
                .map(|stretch| After::of(events(stretch), stretch))
                .collect()
        };
        let began = story.stretches.first().map_or(0.0, |first| first.from);
        let ended = story.stretches.last().map_or(0.0, |last| last.to);
        let percentile_ms =
            |part| percentile(&busy.as_ref()?.took, part).map(|took| rounded(1e3 * took));
        Self {
            system: story.system.name(),
            share_is_fixed: story.system.is_fixed(),
            load: story.load.clone(),
            goodput: busy.as_ref().map_or(0.0, Steady::per_second),
            p50_ms: percentile_ms(0.5),
            p99_ms: percentile_ms(0.99),
            full_goodput: full.as_ref().map_or(0.0, Steady::per_second),
            seen: story.seen,
            refused: story.refused,
            failed: story.heard.iter().map(|heard| failed(&heard.events)).sum(),
            errors: (story.heard.iter())
                .flat_map(|heard| heard.errors.clone())
                .collect(),
            moves: after(What::Move),
            kills: after(What::Kill),
            stretches: (story.stretches.iter())
                .map(|it| rounded(it.from - began))
                .collect(),
            done: (story.heard.iter())
                .map(|heard| done(&heard.events, began, ended))
                .collect(),
        }
    }
}

/// The requests that should have begun between two times.
struct Steady {
    took: Vec<f64>,
    lasts: f64,
}

impl Steady {
    fn of(events: &[Event], from: f64, to: f64) -> Self {
        let events = events.iter().filter(|event| (from..to).contains(&event.at));
        let took = events.filter_map(|event| match event.outcome {
            Outcome::Served(took) => Some(took),
            Outcome::Failed | Outcome::Shed => None,
        });
        Self {
            took: took.collect(),
            lasts: to - from,
        }
    }

    fn per_second(&self) -> f64 {
        rounded(self.took.len() as f64 / self.lasts)
    }
}

fn failed(events: &[Event]) -> usize {
    let failed = events.iter().filter(|it| it.outcome == Outcome::Failed);
    failed.count()
}

/// Returns the seconds from the beginning of the stretch to the first request that was served in
/// the first window of which enough requests were.
pub(crate) fn reached(events: &[Event], stretch: &Stretch) -> Option<f64> {
    let mut requests: Vec<&Event> = events.iter().collect();
    requests.retain(|event| (stretch.from..stretch.to).contains(&event.at));
    requests.sort_by(|one, other| one.at.total_cmp(&other.at));
    let size = (WINDOW * stretch.rate) as usize;
    let is_enough = |window: &&[&Event]| {
        let served = window.iter().filter(|event| event.is_served()).count();
        served as f64 >= ENOUGH * size as f64
    };
    let window = requests.windows(size).find(is_enough)?;
    let first = window.iter().find(|event| event.is_served())?;
    Some(first.at - stretch.from)
}

/// Returns the requests per second that were done, for each point of the plot.
fn done(events: &[Event], began: f64, ended: f64) -> Vec<f64> {
    let mut points = vec![0_u32; ((ended - began) / POINT) as usize];
    for event in events {
        if let Outcome::Served(took) = event.outcome
            && event.at + took >= began
            && let Some(point) = points.get_mut(((event.at + took - began) / POINT) as usize)
        {
            *point += 1;
        }
    }
    points
        .into_iter()
        .map(|count| f64::from(count) / POINT)
        .collect()
}

/// Keeps three digits after the point, for a file that people read.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
