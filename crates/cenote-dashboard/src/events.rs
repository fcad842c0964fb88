//! The recent events of a pool: a bounded list that the recorder feeds. Events that are alike and
//! follow each other closely are one entry with a count.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::panic::Location;
use std::time::Duration;

use crate::redact::redact;
use crate::view::{EventView, Level, site};

/// How many entries are kept for each pool.
pub(crate) const MOST: usize = 100;

/// How many of the newest entries may be counted up by an event that is alike. So a storm of events
/// of some kinds leaves the older entries in their place.
const ALIKE: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Events {
    entries: VecDeque<Entry>,
    last_id: u64,
    /// Counts every change, so that a reader can ask for the entries that changed.
    version: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    version: u64,
    time_ms: u64,
    count: u64,
    what: What,
    detail: Detail,
}

/// What makes events alike.
#[derive(Debug, PartialEq)]
pub(crate) struct What {
    pub(crate) kind: &'static str,
    pub(crate) level: Level,
    pub(crate) site: Option<&'static Location<'static>>,
    /// A reason, an error or a label.
    pub(crate) text: Cow<'static, str>,
}

/// What may differ between events that are alike. The last one is shown.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    pub(crate) resource: Option<u64>,
    pub(crate) time: Option<Duration>,
}

impl Events {
    pub(crate) fn add(&mut self, time_ms: u64, what: What, detail: Detail) {
        self.version += 1;
        let newest = self.entries.iter_mut().rev().take(ALIKE);
        if let Some(entry) = newest.into_iter().find(|entry| entry.what == what) {
            entry.version = self.version;
            entry.count += 1;
            (entry.time_ms, entry.detail) = (time_ms, detail);
            return;
        }
        self.last_id += 1;
        if self.entries.len() == MOST {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            id: self.last_id,
            version: self.version,
            time_ms,
            count: 1,
            what,
            detail,
        });
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the entries that are new or have changed since that version, the oldest first.
    pub(crate) fn since(&self, version: u64) -> Vec<EventView> {
        let changed = self.entries.iter().filter(|entry| entry.version > version);
        changed.map(Entry::view).collect()
    }
}

impl Entry {
    fn view(&self) -> EventView {
        let Detail { resource, time } = self.detail;
        EventView {
            id: self.id,
            time_ms: self.time_ms,
            count: self.count,
            kind: self.what.kind,
            level: self.what.level,
            resource,
            took_ms: time.map(crate::view::millis),
            site: self.what.site.and_then(site),
            text: redact(&self.what.text),
        }
    }
}

#[cfg(test)]
mod tests;
