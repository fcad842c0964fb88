//! Snapshots that the callbacks of one collection share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A collection calls all callbacks within this time. A snapshot that is older is from another one.
const LIFETIME: Duration = Duration::from_millis(200);

/// OpenTelemetry has a callback for each instrument, and does not tell them when a collection
/// begins. The first callback that asks twice begins a new one.
#[derive(Debug)]
pub(crate) struct Shelf<T>(Mutex<Option<Kept<T>>>);

#[derive(Debug)]
struct Kept<T> {
    value: Arc<T>,
    taken_at: Instant,
    /// The callbacks that have seen it, as bits.
    seen_by: u64,
}

impl<T> Shelf<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the value of this collection for the callback with this number, which is less than
    /// 64. `take` makes a new one.
    pub(crate) fn get(&self, callback: usize, now: Instant, take: impl FnOnce() -> T) -> Arc<T> {
        let bit = 1 << callback;
        if let Some(kept) = &mut *self.lock() {
            let fresh = now.saturating_duration_since(kept.taken_at) < LIFETIME;
            if fresh && kept.seen_by & bit == 0 {
                kept.seen_by |= bit;
                return Arc::clone(&kept.value);
            }
        }
        let value = Arc::new(take());
        let kept = Kept {
            value: Arc::clone(&value),
            taken_at: now,
            seen_by: bit,
        };
        let before = self.lock().replace(kept);
        drop(before);
        value
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
