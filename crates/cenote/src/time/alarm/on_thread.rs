//! The alarm's thread. It is started by the first waiter of the process, and runs no user code but
//! wakers.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use super::{Alarmed, PACE};
use crate::rt::sync::{AtomicU64, Ordering};
use crate::time::{self, Moment};

/// The pools that have set the alarm, by time. The number tells entries of one moment apart.
type Entries = BTreeMap<(Moment, u64), Weak<dyn Alarmed>>;

/// The alarm of a process, by its number.
static ALARM: Mutex<Option<(u32, &'static Alarm)>> = Mutex::new(None);

#[derive(Default)]
struct Alarm {
    entries: Mutex<Entries>,
    count: AtomicU64,
    /// An entry came that is due before all others.
    sooner: Condvar,
}

/// Returns whether the alarm could be set.
pub(super) fn set<A: Alarmed + 'static>(at: Moment, whose: &Arc<A>) -> bool {
    let Some(alarm) = Alarm::get() else {
        return false;
    };
    let whose = Arc::downgrade(whose);
    if alarm.add(at, whose) {
        alarm.sooner.notify_one();
    }
    true
}

/// The pool is about to end: its memory is freed now, and not when the alarm would have gone off.
pub(crate) fn forget<A: Alarmed + 'static>(whose: &A) {
    let ended = ptr::from_ref(whose).cast::<()>();
    let is_other = |whose: &Weak<dyn Alarmed>| whose.as_ptr().cast::<()>() != ended;
    let known = *ALARM.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, alarm)) = known {
        alarm.lock().retain(|_, whose| is_other(whose));
    }
}

/// Drops a value on another thread, because its destructor may take its time and all pools wait for
/// the alarm.
pub(crate) fn drop_elsewhere(last: impl Send + 'static) {
    let thread = thread::Builder::new().name("cenote-end".into());
    // Where no thread can be started, it is dropped here.
    let _ = thread.spawn(move || drop(last));
}

impl Alarm {
    /// The alarm of this process, because its thread does not survive a fork. `None`: the thread
    /// could not be started.
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

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the new entry is due before all others.
    fn add(&self, at: Moment, whose: Weak<dyn Alarmed>) -> bool {
        let key = (at, self.count.fetch_add(1, Ordering::Relaxed));
        let mut entries = self.lock();
        entries.insert(key, whose);
        entries.keys().next() == Some(&key)
    }

    fn run(&self) {
        loop {
            let (at, whose) = self.next();
            let now = time::now();
            // A bug of ours in one pool must not end the alarm of all.
            let next = catch_unwind(AssertUnwindSafe(|| whose.upgrade()?.alarm(at, now)));
            if let Ok(Some(at)) = next {
                self.add(at, whose);
            }
        }
    }

    /// The next entry, when it is due.
    fn next(&self) -> (Moment, Weak<dyn Alarmed>) {
        let mut entries = self.lock();
        loop {
            let now = time::now();
            entries = match entries.first_entry() {
                None => {
                    let waited = self.sooner.wait(entries);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(first) if first.key().0 + PACE <= now => {
                    let ((at, _), whose) = first.remove_entry();
                    return (at, whose);
                }
                Some(first) => {
                    let pause = (first.key().0 + PACE).saturating_duration_since(now);
                    let waited = self.sooner.wait_timeout(entries, pause);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;
    use crate::{AcquireError, Pool, rt};

    thread_local! {
        /// No alarm can be started on this thread.
        pub(super) static NO_THREADS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn waiters_have_timers_of_their_own_where_no_thread_can_be_started() {
        NO_THREADS.set(true);
        let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
        let pool = pool.build().expect("the settings are valid");

        let (late, waited) = rt::in_real_time(async {
            let _held = pool.acquire().await.expect("one is free");
            let asked = time::now();
            let late = pool.acquire_within(Duration::from_millis(30)).await;
            (late.map(drop), time::now().saturating_duration_since(asked))
        });

        assert!(matches!(late, Err(AcquireError::TimedOut(_))), "{late:?}");
        assert!(waited < Duration::from_secs(1), "{waited:?}");
    }

    /// Not empty, so that each has an address of its own.
    struct Deaf(Option<Moment>);

    impl Alarmed for Deaf {
        fn alarm(self: Arc<Self>, _: Moment, _: Moment) -> Option<Moment> {
            self.0
        }
    }

    #[test]
    fn what_has_ended_is_forgotten_however_often_it_was_set_and_nobody_else_is() {
        let (ended, other) = (Arc::new(Deaf(None)), Arc::new(Deaf(None)));
        let far = time::now() + Duration::from_secs(3600);
        for whose in [&ended, &ended, &other] {
            set(far, whose);
        }
        assert_eq!((Arc::weak_count(&ended), Arc::weak_count(&other)), (2, 1));

        forget(&*ended);

        assert_eq!((Arc::weak_count(&ended), Arc::weak_count(&other)), (0, 1));
    }

    #[test]
    fn a_pool_that_ends_before_the_alarm_goes_off_is_forgotten() {
        let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
        let pool = pool.build().expect("the settings are valid");
        let shared = Arc::downgrade(&pool.shared.0);
        rt::in_real_time(async {
            let _held = pool.acquire().await.expect("one is free");
            let mut waiter = pin!(pool.acquire_within(Duration::from_secs(3600)));
            let waits = poll_fn(|context| Poll::Ready(waiter.as_mut().poll(context).is_pending()));
            assert!(waits.await && pool.shared.ledger().is_alarm_set());
        });

        drop(pool);

        assert_eq!(shared.strong_count(), 0, "it has ended");
        let alarm = Alarm::get().expect("it was started");
        let is_of_pool = |whose: &&Weak<dyn Alarmed>| ptr::addr_eq(whose.as_ptr(), shared.as_ptr());
        assert_eq!(alarm.lock().values().filter(is_of_pool).count(), 0);
    }
}
