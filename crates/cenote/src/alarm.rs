//! The alarm: one thread for all pools, which wakes whoever has waited long enough to look again.
//!
//! A timer for each who waits would cost more than the rest of the wait, and nearly all are never needed. So who waits tells the ledger when
//! to be woken, the ledger sets the alarm only if it is not set for sooner, and in a busy pool that is once a second. The thread is
//! started by the first who waits. It runs no code of users but their wakers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::moment::Moment;
use crate::rt;

/// As exact as tokio's timers. What is due in between is done together.
const PACE: Duration = Duration::from_millis(1);

/// Somebody who has set the alarm.
pub(crate) trait Alarmed: Send + Sync {
    /// The alarm that was set for `at` goes off. Answers with when it must go off next.
    fn alarm(&self, at: Moment, now: Moment) -> Option<Moment>;
}

struct Entry {
    at: Moment,
    whose: Weak<dyn Alarmed>,
}

#[derive(Default)]
struct Alarm {
    entries: Mutex<BinaryHeap<Reverse<Entry>>>,
    /// An entry came that is due before all others.
    sooner: Condvar,
}

/// Sets the alarm. An earlier one stays set: whoever it belongs to knows.
pub(crate) fn set<A: Alarmed + 'static>(at: Moment, whose: &Arc<A>) {
    static ALARM: OnceLock<&'static Alarm> = OnceLock::new();
    let alarm = ALARM.get_or_init(|| {
        let alarm: &'static Alarm = Box::leak(Box::default());
        thread::Builder::new()
            .name("cenote-alarm".into())
            .spawn(|| alarm.run())
            .expect("the operating system can start a thread");
        alarm
    });
    let weak = Arc::downgrade(whose);
    let is_first = alarm.add(Entry { at, whose: weak });
    if is_first {
        alarm.sooner.notify_one();
    }
}

impl Alarm {
    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers with whether it is due before all others.
    fn add(&self, entry: Entry) -> bool {
        let mut entries = self.lock();
        let is_first = entries
            .peek()
            .is_none_or(|Reverse(first)| entry.at < first.at);
        entries.push(Reverse(entry));
        is_first
    }

    fn run(&self) {
        loop {
            let entry = self.next();
            let now = rt::now();
            // The last reference to a pool may be dropped here, and its manager with it: foreign code.
            let next = catch_unwind(AssertUnwindSafe(|| {
                let whose = entry.whose.upgrade()?;
                whose.alarm(entry.at, now)
            }));
            if let Ok(Some(at)) = next {
                let whose = entry.whose;
                self.add(Entry { at, whose });
            }
        }
    }

    /// The next entry, when it is due.
    fn next(&self) -> Entry {
        let mut entries = self.lock();
        loop {
            let left = entries
                .peek()
                .map(|Reverse(first)| first.at.saturating_duration_since(rt::now()));
            entries = match left {
                None => self
                    .sooner
                    .wait(entries)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) if !left.is_zero() => {
                    let waited = self.sooner.wait_timeout(entries, left.max(PACE));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => match entries.pop() {
                    Some(Reverse(entry)) => return entry,
                    None => entries,
                },
            };
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
