//! The observer of one pool. Acquires and releases go to counters without a lock. Rarer events go
//! to a bounded list.

use std::borrow::Cow;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote::event::{
    AcquireRefused, AcquireTimedOut, Acquired, BreakerChanged, Callback, CallbackFailed, Closed,
    Detached, Discarded, Leaked, NestedAcquire, Observer, OpenFailed, Opened, PoolClosed, Released,
    Resized, ReturnedLate, Warmed,
};
use cenote::status::CloseReason;
use cenote_telemetry::Sites;

use crate::clock::unix_ms;
use crate::events::{Detail, Events, What};
use crate::histogram::Histogram;
use crate::view::Level;

/// How many lines of code are told apart in the totals of a pool. The others count together.
const SITES: usize = 50;

#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) waits: Histogram,
    pub(crate) uses: Histogram,
    pub(crate) sites: Sites,
    events: Mutex<Events>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            waits: Histogram::default(),
            uses: Histogram::default(),
            sites: Sites::new(SITES),
            events: Mutex::default(),
        }
    }

    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this page changed the pool.
    pub(crate) fn acted(&self, action: String) {
        let note = Note::new("action", Level::Notice).text(action);
        self.add(note);
    }

    fn add(&self, note: Note) {
        self.events().add(unix_ms(), note.what, note.detail);
    }
}

impl Observer for Recorder {
    fn acquired(&self, event: &Acquired<'_>) {
        self.waits.record(event.waited);
        self.sites.acquired(event);
    }

    fn released(&self, event: &Released<'_>) {
        self.uses.record(event.held);
        self.sites.released(event);
    }

    fn opened(&self, event: &Opened<'_>) {
        let note = Note::new("opened", Level::Notice);
        self.add(note.resource(event.id).took(event.took));
    }

    fn open_failed(&self, event: &OpenFailed<'_>) {
        let note = Note::new("open_failed", Level::Trouble).took(event.took);
        self.add(note.text(event.error.to_string()));
    }

    fn closed(&self, event: &Closed<'_>) {
        let broken = matches!(
            event.reason,
            CloseReason::Broken | CloseReason::FailedCheck | CloseReason::FailedClean
        );
        let level = if broken {
            Level::Warning
        } else {
            Level::Notice
        };
        let note = Note::new("closed", level).resource(event.id);
        self.add(note.text(event.reason.name()));
    }

    fn discarded(&self, event: &Discarded<'_>) {
        let note = Note::new("discarded", Level::Notice);
        self.add(note.resource(event.id).site(event.site));
    }

    fn detached(&self, event: &Detached<'_>) {
        let note = Note::new("detached", Level::Notice);
        self.add(note.resource(event.id).site(event.site));
    }

    fn callback_failed(&self, event: &CallbackFailed<'_>) {
        let callback = match event.callback {
            Callback::Check => "check",
            Callback::Inspect => "inspection",
            Callback::Clean => "clean",
            Callback::Close => "close",
            Callback::BeforeAcquire => "before_acquire",
            Callback::BeforeRelease => "before_release",
            _ => "callback",
        };
        let note = Note::new("callback_failed", Level::Warning).resource(event.id);
        self.add(note.text(format!("{callback}: {}", event.message)));
    }

    fn timed_out(&self, event: &AcquireTimedOut<'_>) {
        let note = Note::new("timed_out", Level::Trouble);
        self.add(note.site(event.site).took(event.waited));
        self.sites.timed_out(event);
    }

    fn refused(&self, event: &AcquireRefused<'_>) {
        let note = Note::new("refused", Level::Warning);
        self.add(note.site(event.site).text(event.reason.name()));
    }

    fn warmed(&self, event: &Warmed<'_>) {
        let (level, text) = match event.complete {
            true => (Level::Notice, "complete"),
            false => (Level::Warning, "not complete"),
        };
        self.add(Note::new("warmed", level).took(event.took).text(text));
    }

    fn leaked(&self, event: &Leaked<'_>) {
        let holder = event.holder;
        let note = Note::new("leaked", Level::Trouble).resource(holder.id);
        let label = holder.label.clone().unwrap_or_default();
        self.add(note.site(holder.site).took(holder.held_for).text(label));
    }

    fn returned_late(&self, event: &ReturnedLate<'_>) {
        let note = Note::new("returned_late", Level::Notice).resource(event.id);
        self.add(note.site(event.site).took(event.held));
    }

    fn nested_acquire(&self, event: &NestedAcquire<'_>) {
        let text = format!("all {} leases are held by waiters", event.holders.len());
        let note = Note::new("deadlock", Level::Trouble).site(event.site);
        self.add(note.text(text));
    }

    fn breaker_changed(&self, event: &BreakerChanged<'_>) {
        let note = Note::new("breaker", Level::Warning);
        self.add(note.text(format!("{} to {}", event.from, event.to)));
    }

    fn resized(&self, event: &Resized<'_>) {
        let note = Note::new("resized", Level::Notice);
        self.add(note.text(format!("{} to {}", event.from, event.to)));
    }

    fn pool_closed(&self, event: &PoolClosed<'_>) {
        let note = Note::new("pool_closed", Level::Warning);
        self.add(note.text(format!("{} leases are out", event.in_use)));
    }
}

/// An event on its way to the list.
struct Note {
    what: What,
    detail: Detail,
}

impl Note {
    fn new(kind: &'static str, level: Level) -> Self {
        let what = What {
            kind,
            level,
            site: None,
            text: Cow::Borrowed(""),
        };
        Self {
            what,
            detail: Detail::default(),
        }
    }

    fn text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.what.text = text.into();
        self
    }

    fn site(mut self, site: &'static Location<'static>) -> Self {
        self.what.site = Some(site);
        self
    }

    fn resource(mut self, id: u64) -> Self {
        self.detail.resource = Some(id);
        self
    }

    fn took(mut self, time: Duration) -> Self {
        self.detail.time = Some(time);
        self
    }
}
