//! The load of a trace: who came when, and for how long a lease was held.

use std::time::Duration;

use cenote::Config;
use cenote_telemetry::trace::{Outcome, Recorded, Visit};

/// What is played. It is the same for all sizes.
#[derive(Debug)]
pub(super) struct Load {
    /// The settings of the pool, except its size.
    pub(super) config: Config,
    /// How many resources it had at the start.
    pub(super) total: usize,
    /// In the order of their arrival.
    pub(super) calls: Vec<Call>,
    /// How long opens took; they take turns.
    pub(super) opens: Vec<Duration>,
    /// How long the recording lasted.
    pub(super) lasted: Duration,
}

/// One call of acquire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) arrival: Duration,
    /// How long it waits at most.
    pub(super) patience: Duration,
    /// For how long the lease is held.
    pub(super) hold: Duration,
    /// How many leases were out in the recording when it was granted, with its own.
    pub(super) among: u32,
    pub(super) site: usize,
    /// It timed out in the recording, so the time of its lease is that of another one.
    pub(super) is_guess: bool,
}

impl Load {
    pub(super) fn new(recorded: &Recorded) -> Self {
        let visits = &recorded.visits;
        let ends = visits.iter().map(|visit| visit.arrival + visit.waited);
        let lasted = recorded.end.map(|end| end.lasted);
        let lasted = lasted.or_else(|| ends.max()).unwrap_or_default();
        let holds = Holds::new(visits, recorded.sites.len(), lasted);
        let among = among(visits, &holds, recorded.config.max_size);
        let most = recorded.config.acquire_timeout.unwrap_or(Duration::MAX);
        let call = |nth: usize| {
            let visit = &visits[nth];
            let is_guess = visit.outcome == Outcome::TimedOut;
            Call {
                arrival: visit.arrival,
                // A call may have had a limit of its own.
                patience: match is_guess {
                    true => visit.waited,
                    false => most.max(visit.waited),
                },
                hold: holds.of(nth, visit),
                among: among[nth],
                site: visit.site,
                is_guess,
            }
        };
        let mut calls: Vec<_> = (0..visits.len()).map(call).collect();
        calls.sort_by_key(|call| call.arrival);
        Self {
            config: recorded.config.clone(),
            total: recorded.total,
            calls,
            opens: recorded.opens.clone(),
            lasted,
        }
    }
}

/// How long leases were held, by site, for calls that got none.
struct Holds {
    by_site: Vec<Vec<Duration>>,
    all: Vec<Duration>,
    ends: Duration,
}

impl Holds {
    fn new(visits: &[Visit], sites: usize, ends: Duration) -> Self {
        let mut by_site = vec![Vec::new(); sites];
        let mut all = Vec::new();
        for visit in visits {
            if let Outcome::Returned { held } = visit.outcome {
                by_site[visit.site].push(held);
                all.push(held);
            }
        }
        Self { by_site, all, ends }
    }

    /// Returns for how long a visit holds its lease. One that timed out gets the time of another
    /// visit of its line of code.
    fn of(&self, nth: usize, visit: &Visit) -> Duration {
        let pick = |from: &Vec<Duration>| from.get(nth % from.len().max(1)).copied();
        match visit.outcome {
            Outcome::Returned { held } => held,
            Outcome::Kept => self.ends.saturating_sub(visit.arrival + visit.waited),
            Outcome::TimedOut => {
                let same = pick(&self.by_site[visit.site]);
                same.or_else(|| pick(&self.all)).unwrap_or_default()
            }
        }
    }
}

/// Returns how many leases were out when each visit was granted, with its own. A visit that timed
/// out would have been granted among all.
fn among(visits: &[Visit], holds: &Holds, max_size: usize) -> Vec<u32> {
    let full = u32::try_from(max_size).unwrap_or(u32::MAX);
    let mut among = vec![full; visits.len()];
    let mut changes = Vec::with_capacity(visits.len() * 2);
    for (nth, visit) in visits.iter().enumerate() {
        if visit.outcome != Outcome::TimedOut {
            let granted = visit.arrival + visit.waited;
            changes.push((granted, true, nth));
            changes.push((granted.saturating_add(holds.of(nth, visit)), false, nth));
        }
    }
    // Of two changes at one moment, the return comes first: it makes room for the grant.
    changes.sort_unstable_by_key(|&(at, is_grant, nth)| (at, is_grant, nth));
    let mut out: u32 = 0;
    for (_, is_grant, nth) in changes {
        if is_grant {
            out += 1;
            among[nth] = out;
        } else {
            // A lease of no time at all comes back before it was granted.
            out = out.saturating_sub(1);
        }
    }
    among
}

#[cfg(test)]
mod tests;
