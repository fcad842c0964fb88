//! How much longer leases are held if more of them are out at once.
//!
//! The trace tells: leases that were granted while many were out took longer than those of the same
//! line of code while few were out. The universal scalability law is fitted to that. It is the
//! pessimistic edge for sizes that the trace has not seen.

use serde::Serialize;

use super::load::Load;
use crate::tune::{Point, Usl};

/// The leases are put into groups by how many were out. More groups would be noisier.
const GROUPS: usize = 8;

/// With fewer leases, a group says nothing.
const FEWEST: usize = 30;

/// No server scales without end. At least this part of the work is done one after the other, also
/// if the trace shows none.
const LEAST_SIGMA: f64 = 0.02;

/// The leases of two hours with the same load differ by some per cent. A band that is narrower
/// would promise too much.
pub(super) const NOISE: f64 = 0.05;

/// How long leases are held in a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Case {
    /// As long as they were recorded.
    Firm,
    /// A little shorter, however many are out.
    Best,
    /// A little longer, and longer where more are out than in the recording.
    Worst(Stretch),
}

impl Case {
    /// Returns the time of a lease as a multiple of the recorded one. It was granted among `before`
    /// leases in the recording, and is granted among `now` in the replay.
    pub(super) fn factor(&self, before: u32, now: u32) -> f64 {
        match self {
            Self::Firm => 1.0,
            Self::Best => 1.0 - NOISE,
            Self::Worst(stretch) => (1.0 + NOISE) * stretch.factor(before, now),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Stretch {
    pub(super) sigma: f64,
    pub(super) kappa: f64,
    /// Whether the trace has shown it. Otherwise the server is assumed to be full: more leases at
    /// once only share what one more would have had.
    pub(super) measured: bool,
}

impl Stretch {
    pub(super) fn of(load: &Load) -> Self {
        match Usl::fit(&points(load)) {
            Some(law) => Self {
                sigma: law.sigma.max(LEAST_SIGMA),
                kappa: law.kappa,
                measured: true,
            },
            None => Self {
                sigma: 1.0,
                kappa: 0.0,
                measured: false,
            },
        }
    }

    /// Returns by how much a lease that was granted among `before` is longer among `now`. It is
    /// never shorter.
    pub(super) fn factor(&self, before: u32, now: u32) -> f64 {
        let law = Usl {
            lambda: 1.0,
            sigma: self.sigma,
            kappa: self.kappa,
            r_squared: 1.0,
        };
        let slowdown = |among: u32| law.slowdown(among.max(1) as usize);
        (slowdown(now) / slowdown(before)).max(1.0)
    }
}

/// Returns the throughput by the number of leases that were out, in units of one lease alone.
fn points(load: &Load) -> Vec<Point> {
    let mut leases = relative_holds(load);
    leases.sort_by_key(|&(among, _)| among);
    let enough = (leases.len() / GROUPS).max(FEWEST);
    let mut points = Vec::new();
    let mut rest = &leases[..];
    while rest.len() >= enough {
        // Leases among the same number stay together.
        let last = rest[enough - 1].0;
        let (group, others) = rest.split_at(rest.partition_point(|&(among, _)| among <= last));
        rest = others;
        let count = group.len() as f64;
        let size = group
            .iter()
            .map(|&(among, _)| f64::from(among))
            .sum::<f64>()
            / count;
        let hold = group.iter().map(|&(_, hold)| hold).sum::<f64>() / count;
        points.push(Point {
            size: size.round() as usize,
            per_second: size / hold.max(1e-9),
            use_ms: 0.0,
            p99_ms: 0.0,
            noise: 0.0,
            client_busy: 0.0,
        });
    }
    points
}

/// Returns how many leases were out for each lease, and its time as a multiple of the mean of its
/// line of code. So a line with long leases that comes in bursts does not look like a slow server.
fn relative_holds(load: &Load) -> Vec<(u32, f64)> {
    let known = || load.calls.iter().filter(|call| !call.is_guess);
    let sites = known().map(|call| call.site + 1).max().unwrap_or(0);
    let mut sums = vec![(0.0, 0.0); sites];
    for call in known() {
        let (time, count) = &mut sums[call.site];
        (*time, *count) = (*time + call.hold.as_secs_f64(), *count + 1.0);
    }
    let relative = known().filter_map(|call| {
        let (time, count) = sums[call.site];
        (time > 0.0).then(|| (call.among, call.hold.as_secs_f64() * count / time))
    });
    relative.collect()
}

#[cfg(test)]
mod tests;
