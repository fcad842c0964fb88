//! Events: what an observer is told, one struct each. Raised outside every lock.

use std::error::Error;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::BreakerState;
use crate::status::{Holder, Reason, Status};

/// Is told what happens in a pool. Every method is empty by default.
///
/// Events are raised in the task or thread whose event it is, with no lock held: a slow observer slows down only that one, and a panic in
/// an observer is caught and dropped. Without an observer nothing is measured for it.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
/// use cenote::{Acquired, Observer, Pool};
///
/// #[derive(Default)]
/// struct Count(AtomicU64);
///
/// impl Observer for Count {
///     fn acquired(&self, _: &Acquired<'_>) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let count = Arc::new(Count::default());
/// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(())).observer(count.clone()).build()?;
/// drop(pool.acquire().await?);
/// assert_eq!(count.0.load(Ordering::Relaxed), 1);
/// # Ok(()) }
/// ```
#[expect(unused_variables, reason = "the names document the events")]
pub trait Observer: Send + Sync + 'static {
    /// A pool was built.
    fn pool_opened(&self, event: &PoolOpened<'_>) {}
    /// A pool was closed: nothing is lent any more.
    fn pool_closed(&self, event: &PoolClosed<'_>) {}
    /// A resource is about to be opened.
    fn opening(&self, event: &Opening<'_>) {}
    /// A resource was opened.
    fn opened(&self, event: &Opened<'_>) {}
    /// A resource could not be opened.
    fn open_failed(&self, event: &OpenFailed<'_>) {}
    /// A lease was handed out.
    fn acquired(&self, event: &Acquired<'_>) {}
    /// A lease came back.
    fn released(&self, event: &Released<'_>) {}
    /// A lease was discarded by its holder. `released` was raised just before.
    fn discarded(&self, event: &Discarded<'_>) {}
    /// A lease was detached: its resource left the pool with its holder.
    fn detached(&self, event: &Detached<'_>) {}
    /// A resource was closed.
    fn closed(&self, event: &Closed<'_>) {}
    /// A check, a clean, a close or a hook failed, hung or panicked.
    fn callback_failed(&self, event: &CallbackFailed<'_>) {}
    /// An acquire ran out of time. Raised before its error returns.
    fn timed_out(&self, event: &TimeoutRaised<'_>) {}
    /// A lease is out for longer than `leak_after`. Raised once a lease.
    fn leaked(&self, event: &Leaked<'_>) {}
    /// A lease that was reported as leaked came back after all.
    fn returned_late(&self, event: &ReturnedLate<'_>) {}
    /// Every lease is held by a task that waits for this pool.
    fn nested_acquire(&self, event: &NestedAcquire<'_>) {}
    /// The circuit breaker changed its state.
    fn breaker_changed(&self, event: &BreakerChanged<'_>) {}
    /// `max_size` changed.
    fn resized(&self, event: &Resized<'_>) {}
}

/// Defines an event: every one names its pool.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct $name<'a> {
            /// The pool's name.
            pub pool: &'a str,
            $($(#[$field_doc])* pub $field: $type,)*
        }
    )*};
}

events! {
    /// A pool was built.
    PoolOpened {
        /// Its cap.
        max_size: usize,
    }
    /// A pool was closed.
    PoolClosed {
        /// How many leases are still out.
        in_use: usize,
    }
    /// A resource is about to be opened.
    Opening {}
    /// A resource was opened.
    Opened {
        /// Its number in this pool, from 1.
        id: u64,
        /// How long it took.
        took: Duration,
    }
    /// A resource could not be opened.
    OpenFailed {
        /// How long it took.
        took: Duration,
        /// Why.
        error: &'a (dyn Error + 'static),
    }
    /// A lease was handed out.
    Acquired {
        /// Which resource.
        id: u64,
        /// How long the caller waited; zero if it was served at once.
        waited: Duration,
        /// Where it was acquired.
        site: &'static Location<'static>,
    }
    /// A lease came back.
    Released {
        /// Which resource.
        id: u64,
        /// For how long it was out.
        held: Duration,
        /// Where it was acquired.
        site: &'static Location<'static>,
    }
    /// A lease was discarded by its holder.
    Discarded {
        /// Which resource.
        id: u64,
        /// Where it was acquired.
        site: &'static Location<'static>,
    }
    /// A lease was detached: its resource left the pool with its holder.
    Detached {
        /// Which resource.
        id: u64,
        /// Where it was acquired.
        site: &'static Location<'static>,
    }
    /// A resource was closed.
    Closed {
        /// Which resource.
        id: u64,
        /// Why.
        reason: Reason,
    }
    /// A callback failed, hung or panicked.
    CallbackFailed {
        /// On which resource.
        id: u64,
        /// Which callback.
        callback: Callback,
        /// What was seen.
        message: &'a str,
    }
    /// An acquire ran out of time.
    TimeoutRaised {
        /// Where it was asked for.
        site: &'static Location<'static>,
        /// How long it waited.
        waited: Duration,
        /// The pool at that moment.
        status: &'a Status,
    }
    /// A lease is out for longer than `leak_after`.
    Leaked {
        /// Who holds it.
        holder: &'a Holder,
    }
    /// A lease that was reported as leaked came back.
    ReturnedLate {
        /// Which resource.
        id: u64,
        /// For how long it was out.
        held: Duration,
        /// Where it was acquired.
        site: &'static Location<'static>,
    }
    /// Every lease is held by a task that waits for this pool.
    NestedAcquire {
        /// Where the acquire that closed the circle was asked for.
        site: &'static Location<'static>,
        /// Who holds the leases, longest first.
        holders: &'a [Holder],
    }
    /// The circuit breaker changed its state.
    BreakerChanged {
        /// Before.
        from: BreakerState,
        /// Now.
        to: BreakerState,
    }
    /// `max_size` changed.
    Resized {
        /// Before.
        from: usize,
        /// Now.
        to: usize,
    }
}

/// A callback of the manager, or a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Callback {
    /// [`Manager::check`](crate::Manager::check).
    Check,
    /// [`Manager::is_broken`](crate::Manager::is_broken) or
    /// [`needs_cleaning`](crate::Manager::needs_cleaning).
    Inspect,
    /// [`Manager::clean`](crate::Manager::clean).
    Clean,
    /// [`Manager::close`](crate::Manager::close).
    Close,
    /// The hook before an idle resource is lent.
    BeforeAcquire,
    /// The hook before a resource goes back to idle.
    BeforeRelease,
}

/// The observers of one pool.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn push(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    /// Is anybody listening? Where not, nothing need be prepared.
    pub(crate) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Tells each, and survives each.
    pub(crate) fn tell(&self, event: impl Fn(&dyn Observer)) {
        for observer in &self.0 {
            // A panic here has been reported by the panic hook; there is nobody else to tell.
            let _ = catch_unwind(AssertUnwindSafe(|| event(observer.as_ref())));
        }
    }
}
