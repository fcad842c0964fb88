//! Makes visits of events: finds the acquire to each release.

use std::collections::HashMap;
use std::panic::Location;
use std::time::Duration;

use cenote::status::UNKNOWN_SITE;

use super::recorded::{Outcome, Records, Visit};

/// More lines of code than these are not told apart.
const MOST_SITES: usize = 10_000;

/// An event on its way to the writer. Times of day count from the start of the recording.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    Acquired {
        at: Duration,
        id: u64,
        waited: Duration,
        site: &'static Location<'static>,
    },
    Released {
        at: Duration,
        id: u64,
        held: Duration,
        site: &'static Location<'static>,
    },
    Detached {
        id: u64,
    },
    TimedOut {
        at: Duration,
        waited: Duration,
        site: &'static Location<'static>,
    },
    Opened {
        took: Duration,
    },
    Resized {
        to: usize,
    },
}

/// A lease that is out.
#[derive(Clone, Copy, Debug)]
struct Out {
    granted: Duration,
    waited: Duration,
    site: usize,
}

/// The leases that are out by resource, and the sites that have a number.
///
/// A resource is seldom out twice: the event of a return may come after that of the next grant,
/// because events are raised without a lock.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    out: HashMap<u64, Vec<Out>>,
    sites: HashMap<&'static Location<'static>, usize>,
    /// Grants whose return was lost.
    pub(super) lost: u64,
}

impl Pairing {
    pub(super) fn add(&mut self, told: Told, records: &mut Records) {
        match told {
            Told::Acquired {
                at,
                id,
                waited,
                site,
            } => {
                let site = self.site(site, records);
                let granted = at;
                let out = Out {
                    granted,
                    waited,
                    site,
                };
                self.out.entry(id).or_default().push(out);
            }
            Told::Released { at, id, held, site } => {
                let granted = at.saturating_sub(held);
                // A lease from before the recording is out from its start.
                let out = self.take(id, granted).unwrap_or_else(|| Out {
                    granted,
                    waited: Duration::ZERO,
                    site: self.site(site, records),
                });
                let held = held.min(at);
                records.visit(&out.ended(Outcome::Returned { held }));
            }
            Told::Detached { id } => {
                if let Some(out) = self.take(id, Duration::MAX) {
                    records.visit(&out.ended(Outcome::Kept));
                }
            }
            Told::TimedOut { at, waited, site } => {
                let out = Out {
                    granted: at,
                    waited,
                    site: self.site(site, records),
                };
                records.visit(&out.ended(Outcome::TimedOut));
            }
            Told::Opened { took } => records.opened(took),
            Told::Resized { to } => records.resized(to),
        }
    }

    /// Writes the leases that are still out.
    pub(super) fn end(&mut self, records: &mut Records) {
        for out in self.out.drain().flat_map(|(_, outs)| outs) {
            records.visit(&out.ended(Outcome::Kept));
        }
    }

    /// Takes the lease of a resource that was granted nearest to this moment. Older ones were
    /// returned, too, by events that were lost.
    fn take(&mut self, id: u64, granted: Duration) -> Option<Out> {
        let outs = self.out.get_mut(&id)?;
        let nearest = (0..outs.len()).min_by_key(|&nth| outs[nth].granted.abs_diff(granted))?;
        let found = outs.drain(..=nearest).next_back();
        self.lost += nearest as u64;
        if outs.is_empty() {
            self.out.remove(&id);
        }
        found
    }

    fn site(&mut self, site: &'static Location<'static>, records: &mut Records) -> usize {
        if let Some(&number) = self.sites.get(site) {
            return number;
        }
        if std::ptr::eq(site, UNKNOWN_SITE) || self.sites.len() >= MOST_SITES {
            return 0;
        }
        records.site(&format!("{}:{}", site.file(), site.line()));
        let number = self.sites.len() + 1;
        self.sites.insert(site, number);
        number
    }
}

impl Out {
    fn ended(self, outcome: Outcome) -> Visit {
        Visit {
            arrival: self.granted.saturating_sub(self.waited),
            waited: self.waited,
            outcome,
            site: self.site,
            lane: 0,
        }
    }
}
