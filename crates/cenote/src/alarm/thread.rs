//! The alarm's thread. It is started by the first waiter of the process, and runs no user code but wakers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use super::{Alarmed, PACE};
use crate::moment::Moment;
use crate::rt;

struct Entry {
    at: Moment,
    whose: Weak<dyn Alarmed>,
}

/// By the number of the process.
static ALARM: Mutex<Option<(u32, &'static Alarm)>> = Mutex::new(None);

#[derive(Default)]
struct Alarm {
    entries: Mutex<BinaryHeap<Reverse<Entry>>>,
    /// An entry came that is due before all others.
    sooner: Condvar,
}

/// Returns whether it could be set.
pub(super) fn set<A: Alarmed + 'static>(at: Moment, whose: &Arc<A>) -> bool {
    let Some(alarm) = Alarm::get() else {
        return false;
    };
    let whose = Arc::downgrade(whose);
    if alarm.add(Entry { at, whose }) {
        alarm.sooner.notify_one();
    }
    true
}

/// The pool is about to end: its memory is freed now, and not when the alarm would have gone off.
pub(crate) fn forget<A: Alarmed + 'static>(whose: &A) {
    let ended = ptr::from_ref(whose).cast::<()>();
    let is_other = |entry: &Entry| entry.whose.as_ptr().cast::<()>() != ended;
    let known = *ALARM.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, alarm)) = known {
        alarm.lock().retain(|Reverse(entry)| is_other(entry));
    }
}

/// Drops a value on another thread, because its destructor may take its time and all pools wait for the alarm.
pub(crate) fn drop_elsewhere(last: impl Send + 'static) {
    let thread = thread::Builder::new().name("cenote-end".into());
    // Where no thread can be started, it is dropped here.
    let _ = thread.spawn(move || drop(last));
}

impl Alarm {
    /// That of this process: its thread does not survive a fork. `None`: the thread could not be started.
    fn get() -> Option<&'static Self> {
        #[cfg(test)]
        if tests::NO_THREADS.get() {
            return None;
        }
        let mut known = ALARM.lock().unwrap_or_else(PoisonError::into_inner);
        let process = process::id();
        match *known {
            Some((whose, alarm)) if whose == process => Some(alarm),
            _ => {
                let alarm: &'static Self = Box::leak(Box::default());
                let thread = thread::Builder::new().name("cenote-alarm".into());
                thread.spawn(|| alarm.run()).ok()?;
                *known = Some((process, alarm));
                Some(alarm)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it is due before all others.
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
            // A bug of ours in one pool must not end the alarm of all.
            let next = catch_unwind(AssertUnwindSafe(|| {
                entry.whose.upgrade()?.alarm(entry.at, now)
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
            let now = rt::now();
            let first = entries.peek().map(|Reverse(first)| first.at + PACE);
            if first.is_some_and(|at| at <= now) {
                if let Some(Reverse(entry)) = entries.pop() {
                    return entry;
                }
            }
            let left = first.map(|at| at.saturating_duration_since(now));
            entries = match left {
                None => self
                    .sooner
                    .wait(entries)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    let waited = self.sooner.wait_timeout(entries, pause);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::{AcquireError, Pool};

    thread_local! {
        /// No thread can be started for this one.
        pub(super) static NO_THREADS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn waiters_have_timers_of_their_own_where_no_thread_can_be_started() {
        NO_THREADS.set(true);
        let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
        let pool = pool.build().expect("the settings are valid");

        let (late, waited) = rt::in_real_time(async {
            let _held = pool.acquire().await.expect("one is free");
            let asked = rt::now();
            let late = pool.acquire_timeout(Duration::from_millis(30)).await;
            (late.map(drop), rt::now().saturating_duration_since(asked))
        });

        assert!(matches!(late, Err(AcquireError::TimedOut(_))), "{late:?}");
        assert!(waited < Duration::from_secs(1), "{waited:?}");
    }

    /// Not empty, so that each has a place of its own.
    struct Deaf(Option<Moment>);

    impl Alarmed for Deaf {
        fn alarm(self: Arc<Self>, _: Moment, _: Moment) -> Option<Moment> {
            self.0
        }
    }

    #[test]
    fn what_has_ended_is_forgotten_however_often_it_was_set_and_nobody_else_is() {
        let (ended, other) = (Arc::new(Deaf(None)), Arc::new(Deaf(None)));
        let far = rt::now() + Duration::from_secs(3600);
        for whose in [&ended, &ended, &other] {
            set(far, whose);
        }
        assert_eq!((Arc::weak_count(&ended), Arc::weak_count(&other)), (2, 1));

        forget(&*ended);

        assert_eq!((Arc::weak_count(&ended), Arc::weak_count(&other)), (0, 1));
    }
}
