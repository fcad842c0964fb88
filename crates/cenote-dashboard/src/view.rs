//! What the JSON says. The names of fields are stable, and the README documents them.
//!
//! Times are in milliseconds with three decimals. A time of day is in milliseconds since 1970.

use std::panic::Location;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Percentiles;

/// What all frames and responses begin with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Head {
    /// The number of the frame in its stream.
    pub(crate) frame: u64,
    pub(crate) time_ms: u64,
    /// Differs after a restart of the server.
    pub(crate) instance: String,
    pub(crate) version: &'static str,
    pub(crate) interval_ms: u64,
    /// Whether pools can be changed by requests that have the token.
    pub(crate) actions: bool,
    pub(crate) clients: usize,
    pub(crate) max_clients: usize,
    /// Frames that were not sent because a client was too slow, of all clients.
    pub(crate) dropped_frames: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) pools: Vec<PoolView>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PoolView {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) health: HealthView,
    pub(crate) breaker: String,
    pub(crate) suspended: bool,
    pub(crate) max_size: usize,
    pub(crate) total: usize,
    pub(crate) in_use: usize,
    pub(crate) idle: usize,
    pub(crate) opening: usize,
    pub(crate) checking: usize,
    pub(crate) cleaning: usize,
    pub(crate) closing: usize,
    pub(crate) reserved: usize,
    pub(crate) waiting: usize,
    pub(crate) oldest_wait_ms: Option<f64>,
    pub(crate) acquired: u64,
    pub(crate) timed_out: u64,
    pub(crate) leaked: u64,
    /// In responses and in the first frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<HistoryView>,
    /// In later frames, if there is a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sample: Option<SampleView>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HealthView {
    /// `unproven`, `healthy`, `busy`, `stuck`, `down` or `closed`.
    pub(crate) verdict: &'static str,
    pub(crate) ready: bool,
    /// The verdict in words.
    pub(crate) text: String,
}

/// One moment of the history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SampleView {
    pub(crate) time_ms: u64,
    pub(crate) max_size: usize,
    pub(crate) in_use: usize,
    pub(crate) waiting: usize,
    pub(crate) acquired_per_second: f64,
    /// Of one pool only.
    #[serde(flatten)]
    pub(crate) times: Option<TimesView>,
}

/// Percentiles since the sample before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TimesView {
    pub(crate) wait_ms: Option<Percentiles>,
    pub(crate) use_ms: Option<Percentiles>,
}

/// The history by columns: the value with one index in each column is that of one moment.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct HistoryView {
    pub(crate) every_ms: u64,
    pub(crate) time_ms: Vec<u64>,
    pub(crate) max_size: Vec<usize>,
    pub(crate) in_use: Vec<usize>,
    pub(crate) waiting: Vec<usize>,
    pub(crate) acquired_per_second: Vec<f64>,
    /// Of one pool only.
    #[serde(flatten)]
    pub(crate) times: Option<TimesHistoryView>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct TimesHistoryView {
    pub(crate) wait_ms: Vec<Option<Percentiles>>,
    pub(crate) use_ms: Vec<Option<Percentiles>>,
}

/// All of one pool.
#[derive(Debug, Serialize)]
pub(crate) struct Detail {
    #[serde(flatten)]
    pub(crate) head: Head,
    pub(crate) pool: PoolView,
    pub(crate) totals: TotalsView,
    pub(crate) closes: Vec<CountView>,
    pub(crate) refusals: Vec<CountView>,
    pub(crate) slots: Vec<SlotItem>,
    /// How many slots the list leaves out.
    pub(crate) slots_hidden: usize,
    pub(crate) holders: Vec<HolderView>,
    pub(crate) holders_hidden: usize,
    pub(crate) waiters: Vec<WaiterItem>,
    pub(crate) waiters_hidden: usize,
    pub(crate) sites: Vec<SiteView>,
    /// In frames after the first one: those that are new or have changed.
    pub(crate) events: Vec<EventView>,
    pub(crate) advice: Vec<String>,
    /// If the pool is in a fleet that the page was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<FleetView>,
    /// In responses, in the first frame, and in later frames if it has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Vec<SettingView>>,
}

/// A fleet, as the member in this process sees it.
#[derive(Debug, Serialize)]
pub(crate) struct FleetView {
    /// The name of this member.
    pub(crate) member: String,
    pub(crate) capacity: u32,
    /// The sessions that all members have been granted.
    pub(crate) granted: u32,
    /// The connections that this pool may have.
    pub(crate) share: u32,
    pub(crate) learned: bool,
    pub(crate) disputed: bool,
    /// Why the last round failed.
    pub(crate) error: Option<String>,
    pub(crate) members: Vec<MemberView>,
    pub(crate) members_hidden: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<FleetHistoryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sample: Option<FleetSampleView>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MemberView {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whether it is the member in this process.
    pub(crate) here: bool,
    pub(crate) has: u32,
    pub(crate) wants: u32,
    pub(crate) floor: u32,
    pub(crate) weight: u32,
    pub(crate) fenced: bool,
}

/// One moment of a fleet.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct FleetSampleView {
    pub(crate) time_ms: u64,
    pub(crate) capacity: u32,
    pub(crate) granted: u32,
    pub(crate) share: u32,
    /// The sessions that this member has use for.
    pub(crate) wants: u32,
}

/// The last minutes of a fleet, by columns.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FleetHistoryView {
    pub(crate) every_ms: u64,
    pub(crate) time_ms: Vec<u64>,
    pub(crate) capacity: Vec<u32>,
    pub(crate) granted: Vec<u32>,
    pub(crate) share: Vec<u32>,
    pub(crate) wants: Vec<u32>,
}

/// Counts since the pool was built.
#[derive(Debug, Serialize)]
pub(crate) struct TotalsView {
    pub(crate) acquired: u64,
    pub(crate) waited: u64,
    pub(crate) wait_time_ms: f64,
    pub(crate) released: u64,
    pub(crate) held_time_ms: f64,
    pub(crate) discarded: u64,
    pub(crate) detached: u64,
    pub(crate) opened: u64,
    pub(crate) open_failed: u64,
    pub(crate) closed: u64,
    pub(crate) close_failed: u64,
    pub(crate) timed_out: u64,
    pub(crate) cancelled: u64,
    pub(crate) refused: u64,
    pub(crate) leaked: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct CountView {
    pub(crate) reason: &'static str,
    pub(crate) count: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct SlotItem {
    pub(crate) number: usize,
    pub(crate) state: &'static str,
    /// The number of its resource, if it has one.
    pub(crate) resource: Option<u64>,
    /// For how long it is in this state, if that is known.
    pub(crate) since_ms: Option<f64>,
    /// Whether it is lent for longer than `leak_after`.
    pub(crate) leaked: bool,
}

/// All leases of one line of code with one label.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct HolderView {
    pub(crate) site: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) count: usize,
    pub(crate) longest_ms: f64,
    /// How much of that the resource worked, if it has a meter.
    pub(crate) used_ms: Option<f64>,
    /// At what it worked: "in statements".
    pub(crate) used: Option<&'static str>,
    /// The resource that is held longest.
    pub(crate) resource: u64,
    /// The task or thread that holds it.
    pub(crate) task: Option<String>,
    /// False for grants that their waiters have not taken yet.
    pub(crate) claimed: bool,
    /// Whether the longest is out for longer than `leak_after`.
    pub(crate) leaked: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct WaiterItem {
    pub(crate) site: Option<String>,
    pub(crate) waited_ms: f64,
}

/// What one line of code did since the page was started.
#[derive(Debug, Serialize)]
pub(crate) struct SiteView {
    /// `None` for code that is not known.
    pub(crate) site: Option<String>,
    /// True for the sum of all lines beyond the limit.
    pub(crate) others: bool,
    pub(crate) acquired: u64,
    pub(crate) timed_out: u64,
    pub(crate) waited_ms: f64,
    pub(crate) held_ms: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct EventView {
    pub(crate) id: u64,
    /// When the last one happened.
    pub(crate) time_ms: u64,
    /// How many alike there were.
    pub(crate) count: u64,
    pub(crate) kind: &'static str,
    pub(crate) level: Level,
    pub(crate) resource: Option<u64>,
    pub(crate) took_ms: Option<f64>,
    pub(crate) site: Option<String>,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Notice,
    Warning,
    Trouble,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SettingView {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) default: String,
    pub(crate) changed: bool,
}

/// Returns milliseconds with three decimals.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// Returns the file and line, or `None` for code that is not known.
pub(crate) fn site(site: &'static Location<'static>) -> Option<String> {
    let known = !std::ptr::eq(site, cenote::status::UNKNOWN_SITE);
    known.then(|| format!("{}:{}", site.file(), site.line()))
}

#[cfg(test)]
mod tests;
