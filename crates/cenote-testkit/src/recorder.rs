//! An observer that records every event.

use std::sync::{Mutex, PoisonError};

use cenote::Observer;
use cenote::event::{
    AcquireRefused, AcquireTimedOut, Acquired, BreakerChanged, CallbackFailed, Closed, Detached,
    Discarded, Leaked, NestedAcquire, OpenFailed, Opened, Opening, PoolClosed, PoolOpened,
    Released, Resized, ReturnedLate, Warmed,
};

/// Records every event as a line: its name and its most important fields.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    /// Returns all lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the lines whose first word is `word`.
    pub fn of(&self, word: &str) -> Vec<String> {
        self.lines()
            .into_iter()
            .filter(|line| line.split(' ').next() == Some(word))
            .collect()
    }

    fn write(&self, line: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
}

impl Observer for Recorder {
    fn pool_opened(&self, event: &PoolOpened<'_>) {
        self.write(format!("pool_opened {} {}", event.pool, event.max_size));
    }

    fn pool_closed(&self, event: &PoolClosed<'_>) {
        self.write(format!("pool_closed in_use={}", event.in_use));
    }

    fn refused(&self, event: &AcquireRefused<'_>) {
        self.write(format!("refused {}", event.reason));
    }

    fn warmed(&self, event: &Warmed<'_>) {
        let Warmed {
            opened,
            took,
            complete,
            ..
        } = event;
        self.write(format!("warmed {opened} took={took:?} {complete}"));
    }

    fn opening(&self, _: &Opening<'_>) {
        self.write("opening".to_owned());
    }

    fn opened(&self, event: &Opened<'_>) {
        self.write(format!("opened {} took={:?}", event.id, event.took));
    }

    fn open_failed(&self, event: &OpenFailed<'_>) {
        self.write(format!("open_failed took={:?} {}", event.took, event.error));
    }

    fn acquired(&self, event: &Acquired<'_>) {
        self.write(format!(
            "acquired {} waited={:?} {}",
            event.id, event.waited, event.site
        ));
    }

    fn released(&self, event: &Released<'_>) {
        self.write(format!(
            "released {} held={:?} {}",
            event.id, event.held, event.site
        ));
    }

    fn discarded(&self, event: &Discarded<'_>) {
        self.write(format!("discarded {}", event.id));
    }

    fn detached(&self, event: &Detached<'_>) {
        self.write(format!("detached {}", event.id));
    }

    fn closed(&self, event: &Closed<'_>) {
        self.write(format!("closed {} {}", event.id, event.reason));
    }

    fn callback_failed(&self, event: &CallbackFailed<'_>) {
        self.write(format!(
            "callback_failed {} {:?} {}",
            event.id, event.callback, event.message
        ));
    }

    fn timed_out(&self, event: &AcquireTimedOut<'_>) {
        self.write(format!(
            "timed_out waited={:?} waiting={}",
            event.waited, event.status.waiting
        ));
    }

    fn leaked(&self, event: &Leaked<'_>) {
        self.write(format!("leaked {} {}", event.holder.id, event.holder.site));
    }

    fn returned_late(&self, event: &ReturnedLate<'_>) {
        self.write(format!("returned_late {} held={:?}", event.id, event.held));
    }

    fn nested_acquire(&self, event: &NestedAcquire<'_>) {
        self.write(format!(
            "nested_acquire holders={} {}",
            event.holders.len(),
            event.site
        ));
    }

    fn breaker_changed(&self, event: &BreakerChanged<'_>) {
        self.write(format!("breaker_changed {} {}", event.from, event.to));
    }

    fn resized(&self, event: &Resized<'_>) {
        self.write(format!("resized {} {}", event.from, event.to));
    }
}
