//! One pool that the page shows, with the recorder that is attached to it. It does not keep the
//! pool alive.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote::event::Observer;
use cenote::registry::AnyPool;
use cenote::status::{Holder, SlotState, SlotView};
use cenote::{Health, Status};

use crate::history::{Depth, History};
use crate::recorder::Recorder;
use crate::redact::redact;
use crate::settings;
use crate::view::{
    CountView, Detail, Head, HealthView, HolderView, PoolView, SiteView, SlotItem, TotalsView,
    WaiterItem, millis, site,
};

/// More slots than these are only counted.
const MOST_SLOTS: usize = 1_000;

/// More groups of leases than these are only counted.
const MOST_HOLDERS: usize = 100;

/// More waiters than these are only counted.
const MOST_WAITERS: usize = 50;

pub(crate) struct Watched {
    pub(crate) pool: AnyPool,
    pub(crate) recorder: Arc<Recorder>,
    history: Mutex<History>,
}

/// How much of the past a view has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    All,
    LastSample,
    Nothing,
}

/// What the clients of a pool have seen in the frame before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The version of the list of events.
    pub(crate) events: u64,
    /// It is the only setting that can change.
    pub(crate) max_size: usize,
}

impl Watched {
    /// Attaches a recorder to the pool, unless the pool is gone.
    pub(crate) fn new(pool: AnyPool) -> Option<Self> {
        let recorder = Arc::new(Recorder::new());
        let status = pool.status()?;
        let watched = Self {
            history: Mutex::new(History::new(&recorder, status)),
            pool,
            recorder,
        };
        watched.pool.attach(watched.observer());
        Some(watched)
    }

    /// Adds a sample to the history. `passed` is the time since the one before.
    pub(crate) fn sample(&self, time_ms: u64, passed: Duration) {
        if let Some(status) = self.pool.status() {
            let mut history = self.history();
            history.add(&status, &self.recorder, time_ms, passed);
        }
    }

    /// Returns the pool for the list of all pools, or `None` if it is gone.
    pub(crate) fn row(&self, past: Past) -> Option<PoolView> {
        self.view(&self.pool.status()?, past, Depth::Counts)
    }

    /// Returns all of the pool, or `None` if it is gone. Without `seen` it is complete.
    pub(crate) fn detail(&self, head: Head, past: Past, seen: Option<Seen>) -> Option<Detail> {
        let status = self.pool.status()?;
        let config = self.pool.config()?;
        let (holders, holders_hidden) = group(self.pool.leases()?, config.leak_after);
        let slots = self.pool.slots()?;
        let waiters = self.pool.waiters(MOST_WAITERS)?;
        let same_config = seen.is_some_and(|seen| seen.max_size == config.max_size);
        Some(Detail {
            head,
            pool: self.view(&status, past, Depth::Times)?,
            totals: totals(&status),
            closes: counts(status.closes.iter().map(|(reason, n)| (reason.name(), n))),
            refusals: counts(status.refusals.iter().map(|(reason, n)| (reason.name(), n))),
            slots_hidden: slots.len().saturating_sub(MOST_SLOTS),
            slots: (slots.iter().take(MOST_SLOTS))
                .map(|view| slot(view, config.leak_after))
                .collect(),
            holders,
            holders_hidden,
            waiters_hidden: status.waiting.saturating_sub(waiters.len()),
            waiters: waiters
                .iter()
                .map(|waiter| WaiterItem {
                    site: site(waiter.site),
                    waited_ms: millis(waiter.waited),
                })
                .collect(),
            sites: self.sites(),
            events: self.events_since(seen.map_or(0, |seen| seen.events)),
            advice: self.advice(),
            fleet: None,
            config: (!same_config).then(|| settings::rows(&config)),
        })
    }

    /// Returns what a client has seen that is shown the pool now.
    pub(crate) fn seen(&self) -> Option<Seen> {
        Some(Seen {
            events: self.recorder.events().version(),
            max_size: self.pool.status()?.max_size,
        })
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.recorder) as _
    }

    fn view(&self, status: &Status, past: Past, depth: Depth) -> Option<PoolView> {
        let sample = (past == Past::LastSample).then(|| self.history().last(depth));
        Some(PoolView {
            number: self.pool.number(),
            name: self.pool.name().to_owned(),
            health: health(self.pool.health()?),
            breaker: self.pool.breaker_state()?.to_string(),
            suspended: self.pool.is_suspended(),
            max_size: status.max_size,
            total: status.total,
            in_use: status.in_use,
            idle: status.idle,
            opening: status.opening,
            checking: status.checking,
            cleaning: status.cleaning,
            closing: status.closing,
            reserved: status.reserved,
            waiting: status.waiting,
            oldest_wait_ms: status.oldest_wait.map(millis),
            acquired: status.acquired,
            timed_out: status.timed_out,
            leaked: status.leaked,
            history: (past == Past::All).then(|| self.history().view(depth)),
            sample: sample.flatten(),
        })
    }

    fn sites(&self) -> Vec<SiteView> {
        let totals = self.recorder.sites.totals().into_iter();
        totals
            .map(|total| SiteView {
                site: total.site.and_then(site),
                others: total.site.is_none(),
                acquired: total.acquired,
                timed_out: total.timed_out,
                waited_ms: millis(total.waited),
                held_ms: millis(total.held),
            })
            .collect()
    }

    fn events_since(&self, version: u64) -> Vec<crate::view::EventView> {
        self.recorder.events().since(version)
    }

    /// Returns advice by the load of the last minutes. It may quote an error of the manager.
    fn advice(&self) -> Vec<String> {
        let earliest = self.history().earliest();
        let advice = match earliest {
            Some((earlier, elapsed)) => self.pool.advice_since(&earlier, elapsed),
            None => self.pool.advice(),
        };
        let texts = advice.unwrap_or_default().into_iter();
        texts.map(|advice| redact(&advice.text)).collect()
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns one entry for the leases of each line of code with each label, the longest first, and
/// how many entries were left out. The leases come the longest first.
fn group(leases: Vec<Holder>, leak_after: Option<Duration>) -> (Vec<HolderView>, usize) {
    let mut groups: Vec<HolderView> = Vec::new();
    let mut places: HashMap<_, usize> = HashMap::new();
    for holder in leases {
        let key = (holder.site, holder.label.clone(), holder.claimed);
        match places.entry(key) {
            Entry::Occupied(place) => groups[*place.get()].count += 1,
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push(HolderView {
                    site: site(holder.site),
                    label: holder.label.as_deref().map(redact),
                    count: 1,
                    longest_ms: millis(holder.held_for),
                    used_ms: holder.used.map(|used| millis(used.time)),
                    used: holder.used.map(|used| used.what),
                    resource: holder.id,
                    task: holder.task.map(|task| task.to_string()),
                    claimed: holder.claimed,
                    leaked: leak_after.is_some_and(|limit| holder.held_for > limit),
                });
            }
        }
    }
    let hidden = groups.len().saturating_sub(MOST_HOLDERS);
    groups.truncate(MOST_HOLDERS);
    (groups, hidden)
}

fn slot(slot: &SlotView, leak_after: Option<Duration>) -> SlotItem {
    let too_long = slot
        .since
        .zip(leak_after)
        .is_some_and(|(since, limit)| since > limit);
    SlotItem {
        number: slot.number,
        state: match slot.state {
            SlotState::Vacant => "vacant",
            SlotState::Opening => "opening",
            SlotState::Idle => "idle",
            SlotState::Leased => "leased",
            SlotState::Checking => "checking",
            SlotState::Cleaning => "cleaning",
            SlotState::Closing => "closing",
            SlotState::Reserved => "reserved",
            _ => "other",
        },
        resource: slot.id,
        since_ms: slot.since.map(millis),
        leaked: slot.state == SlotState::Leased && too_long,
    }
}

fn health(health: Health) -> HealthView {
    HealthView {
        verdict: match health {
            Health::Unproven => "unproven",
            Health::Healthy => "healthy",
            Health::Busy => "busy",
            Health::Stuck { .. } => "stuck",
            Health::Down { .. } => "down",
            Health::Closed => "closed",
            _ => "unknown",
        },
        ready: health.is_ready(),
        text: health.to_string(),
    }
}

fn totals(status: &Status) -> TotalsView {
    TotalsView {
        acquired: status.acquired,
        waited: status.waited,
        wait_time_ms: millis(status.wait_time),
        released: status.released,
        held_time_ms: millis(status.held_time),
        discarded: status.discarded,
        detached: status.detached,
        opened: status.opened,
        open_failed: status.open_failed,
        closed: status.closes.total(),
        close_failed: status.close_failed,
        timed_out: status.timed_out,
        cancelled: status.cancelled,
        refused: status.refusals.total(),
        leaked: status.leaked,
    }
}

fn counts(all: impl Iterator<Item = (&'static str, u64)>) -> Vec<CountView> {
    all.map(|(reason, count)| CountView { reason, count })
        .collect()
}
