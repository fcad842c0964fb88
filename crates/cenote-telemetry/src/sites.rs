//! Totals by call site: which code uses a pool most.

use std::cmp::Reverse;
use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use cenote::event::{AcquireTimedOut, Acquired, Observer, Released};
use cenote::status::UNKNOWN_SITE;

/// An observer that adds up, for each line of code that acquires, how often it did, how long it
/// waited, and how long it held.
///
/// Its memory is bounded: sites beyond its limit are counted together. It takes no lock, and
/// allocates nothing for an event. One observer can be attached to several pools.
///
/// ```
/// use std::sync::Arc;
/// use cenote::Pool;
/// use cenote_telemetry::Sites;
///
/// let sites = Arc::new(Sites::new(100));
/// let pool = Pool::from_fn(async || Ok::<_, &str>(())).observer(sites.clone()).build()?;
/// for _ in 0..3 {
///     drop(pool.acquire_blocking()?);
/// }
///
/// let most = &sites.totals()[0];
/// assert_eq!((most.site.unwrap().file(), most.acquired, most.timed_out), (file!(), 3, 0));
/// assert!(sites.to_string().contains(file!()), "one line for each site: {sites}");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Sites {
    limit: usize,
    /// How many slots are taken, or are about to be. At most `limit`.
    taken: AtomicUsize,
    /// An open hash table. It has twice as many slots as sites, so every probe ends at a free one.
    slots: Box<[Slot]>,
    others: Counts,
}

/// The totals of one line of code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteTotals {
    /// The line, or `None` for all sites beyond the limit.
    pub site: Option<&'static Location<'static>>,
    /// How many leases it got.
    pub acquired: u64,
    /// How many of its acquires timed out.
    pub timed_out: u64,
    /// How long it waited in total, for leases and for timeouts.
    pub waited: Duration,
    /// How long the leases that came back were out, in total.
    pub held: Duration,
}

impl Sites {
    /// An observer that tells this many sites apart. Each takes about a hundred bytes.
    pub fn new(limit: usize) -> Self {
        let slots = (limit.max(1) * 2).next_power_of_two();
        Self {
            limit,
            taken: AtomicUsize::new(0),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            others: Counts::default(),
        }
    }

    /// Returns the totals of each site, the one that held longest first. The sites beyond the limit
    /// come last, as one entry.
    pub fn totals(&self) -> Vec<SiteTotals> {
        let sites = self.slots.iter().filter_map(|slot| {
            let site = slot.site.get()?;
            Some(slot.counts.read(Some(site)))
        });
        let mut totals: Vec<_> = sites.collect();
        totals.sort_by_key(|site| Reverse((site.held, site.acquired)));
        let others = self.others.read(None);
        if others.acquired + others.timed_out > 0 || !others.held.is_zero() {
            totals.push(others);
        }
        totals
    }

    #[inline]
    fn counts(&self, site: &'static Location<'static>) -> &Counts {
        self.find(site).unwrap_or_else(|| self.enter(site))
    }

    fn find(&self, site: &'static Location<'static>) -> Option<&Counts> {
        for slot in self.probe(site) {
            if is_same(slot.site.get()?, site) {
                return Some(&slot.counts);
            }
        }
        None
    }

    #[cold]
    fn enter(&self, site: &'static Location<'static>) -> &Counts {
        let more = |taken| (taken < self.limit).then_some(taken + 1);
        if self.taken.fetch_update(Relaxed, Relaxed, more).is_err() {
            return &self.others;
        }
        for slot in self.probe(site) {
            if slot.site.set(site).is_ok() {
                return &slot.counts;
            }
            // Another thread was faster, perhaps with the same site.
            if slot.site.get().is_some_and(|owner| is_same(owner, site)) {
                self.taken.fetch_sub(1, Relaxed);
                return &slot.counts;
            }
        }
        &self.others
    }

    /// Returns the slots in which the site may be, in order. Slots are never freed, so the site is
    /// not behind a free one.
    fn probe(&self, site: &'static Location<'static>) -> impl Iterator<Item = &Slot> {
        let start = hash(site);
        let mask = self.slots.len() - 1;
        (0..self.slots.len()).map(move |step| &self.slots[start.wrapping_add(step) & mask])
    }
}

impl Observer for Sites {
    fn acquired(&self, event: &Acquired<'_>) {
        let counts = self.counts(event.site);
        counts.acquired.fetch_add(1, Relaxed);
        add(&counts.waited, event.waited);
    }

    fn released(&self, event: &Released<'_>) {
        add(&self.counts(event.site).held, event.held);
    }

    fn timed_out(&self, event: &AcquireTimedOut<'_>) {
        let counts = self.counts(event.site);
        counts.timed_out.fetch_add(1, Relaxed);
        add(&counts.waited, event.waited);
    }
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.totals()).finish()
    }
}

/// One line for each site, the one that held longest first.
impl fmt::Display for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.totals()
            .iter()
            .try_for_each(|site| writeln!(f, "{site}"))
    }
}

impl fmt::Display for SiteTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.site {
            None => f.write_str("others")?,
            Some(site) if std::ptr::eq(site, UNKNOWN_SITE) => f.write_str("unknown site")?,
            Some(site) => write!(f, "{}:{}", site.file(), site.line())?,
        }
        let Self {
            acquired,
            held,
            waited,
            ..
        } = self;
        write!(
            f,
            ": {acquired} leases held for {held:.1?}, waited {waited:.1?}"
        )?;
        match self.timed_out {
            0 => Ok(()),
            timed_out => write!(f, ", {timed_out} timed out"),
        }
    }
}

#[derive(Default)]
struct Slot {
    site: OnceLock<&'static Location<'static>>,
    counts: Counts,
}

/// Times are in nanoseconds: 584 years fit.
#[derive(Default)]
struct Counts {
    acquired: AtomicU64,
    timed_out: AtomicU64,
    waited: AtomicU64,
    held: AtomicU64,
}

impl Counts {
    fn read(&self, site: Option<&'static Location<'static>>) -> SiteTotals {
        SiteTotals {
            site,
            acquired: self.acquired.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            waited: Duration::from_nanos(self.waited.load(Relaxed)),
            held: Duration::from_nanos(self.held.load(Relaxed)),
        }
    }
}

fn add(total: &AtomicU64, time: Duration) {
    // Most waits are zero.
    if !time.is_zero() {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        total.fetch_add(nanos, Relaxed);
    }
}

/// The compiler may have several values for one line.
fn is_same(one: &'static Location<'static>, other: &'static Location<'static>) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// By line and column, which are read faster than the name of the file.
fn hash(site: &Location<'_>) -> usize {
    let place = u64::from(site.line()) << 16 ^ u64::from(site.column());
    // The product with an odd number spreads the bits. The upper half has the best of them.
    (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}

#[cfg(test)]
mod tests;
