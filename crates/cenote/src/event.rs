//! Events: an [`Observer`] is told what happens in a pool, for logs and metrics.
//!
//! You need this module if you write an observer. It has one struct per event. This one records the
//! events in the life of a resource:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use cenote::event::*;
//! use cenote::{Lease, Pool};
//!
//! #[derive(Default)]
//! struct Log(Mutex<Vec<String>>);
//!
//! impl Log {
//!     fn add(&self, line: String) {
//!         self.0.lock().unwrap().push(line);
//!     }
//! }
//!
//! impl Observer for Log {
//!     fn pool_opened(&self, e: &PoolOpened<'_>) { self.add(format!("up to {}", e.max_size)) }
//!     fn opening(&self, e: &Opening<'_>) { self.add(format!("{} opens one", e.pool)) }
//!     fn opened(&self, e: &Opened<'_>) { self.add(format!("opened {}", e.id)) }
//!     fn acquired(&self, e: &Acquired<'_>) { self.add(format!("acquired {}", e.id)) }
//!     fn released(&self, e: &Released<'_>) { self.add(format!("released {}", e.id)) }
//!     fn discarded(&self, e: &Discarded<'_>) { self.add(format!("discarded {}", e.id)) }
//!     fn detached(&self, e: &Detached<'_>) { self.add(format!("detached {}", e.id)) }
//!     fn closed(&self, e: &Closed<'_>) { self.add(format!("closed {}: {}", e.id, e.reason)) }
//!     fn resized(&self, e: &Resized<'_>) { self.add(format!("{} became {}", e.from, e.to)) }
//!     fn pool_closed(&self, e: &PoolClosed<'_>) { self.add(format!("{} are out", e.in_use)) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = Arc::new(Log::default());
//! let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("p").observer(log.clone()).build()?;
//! Lease::discard(pool.acquire().await?);
//! Lease::detach(pool.acquire().await?);
//! pool.resize(5)?;
//! pool.close();
//! assert_eq!(
//!     *log.0.lock().unwrap(),
//!     [
//!         "up to 10",
//!         "p opens one", "opened 1", "acquired 1", "released 1", "discarded 1",
//!         "closed 1: discarded", "p opens one", "opened 2", "acquired 2", "detached 2",
//!         "10 became 5", "0 are out",
//!     ],
//! );
//! # Ok(()) }
//! ```
//!
//! And this one records trouble:
//!
//! ```
//! # use std::sync::{Arc, Mutex};
//! # use std::time::Duration;
//! # use cenote::{Lease, Pool};
//! # use tokio::time::sleep;
//! # #[derive(Default)]
//! # struct Log(Mutex<Vec<String>>);
//! # impl Log {
//! #     fn add(&self, line: String) {
//! #         self.0.lock().unwrap().push(line);
//! #     }
//! # }
//! use cenote::event::*;
//!
//! impl Observer for Log {
//!     fn open_failed(&self, e: &OpenFailed<'_>) { self.add(e.error.to_string()) }
//!     fn callback_failed(&self, e: &CallbackFailed<'_>) {
//!         self.add(format!("{:?} of {}: {}", e.callback, e.id, e.message));
//!     }
//!     fn timed_out(&self, e: &AcquireTimedOut<'_>) { self.add(format!("waited {:?}", e.waited)) }
//!     fn leaked(&self, e: &Leaked<'_>) { self.add(format!("{} is leaked", e.holder.id)) }
//!     fn returned_late(&self, e: &ReturnedLate<'_>) { self.add(format!("after {:?}", e.held)) }
//!     fn nested_acquire(&self, e: &NestedAcquire<'_>) {
//!         self.add(format!("{} held by waiters", e.holders.len()));
//!     }
//!     fn breaker_changed(&self, e: &BreakerChanged<'_>) { self.add(format!("now {}", e.to)) }
//!     fn refused(&self, e: &AcquireRefused<'_>) { self.add(format!("refused: {}", e.reason)) }
//!     fn warmed(&self, e: &Warmed<'_>) { self.add(format!("warmed up: {}", e.complete)) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = Arc::new(Log::default());
//! let pool = Pool::from_fn(async || Err::<(), _>("refused")).observer(log.clone()).build()?;
//! assert!(pool.acquire().await.is_err());
//! assert!(pool.warm().await.is_err());
//! drop(pool);
//!
//! let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).observer(log.clone());
//! let pool = pool.before_release(async |_: &mut ()| false).build()?;
//! let lease = pool.acquire().await?;
//! assert!(pool.acquire().await.is_err(), "this task holds the only one");
//! sleep(Duration::from_secs(26)).await;
//! Lease::release(lease).await;
//! pool.breaker().trip();
//! assert!(pool.acquire().await.is_err());
//! assert_eq!(
//!     *log.0.lock().unwrap(),
//!     [
//!         "opening failed: refused", "opening failed: refused", "warmed up: false",
//!         "1 held by waiters", "waited 5s", "1 is leaked", "after 31s",
//!         "BeforeRelease of 1: returned false", "now inactive",
//!         "refused: unavailable",
//!     ],
//! );
//! # Ok(()) }
//! ```

use std::error::Error;
use std::panic::Location;
use std::time::Duration;

use crate::breaker::BreakerState;
use crate::log::Log;
use crate::observers::Observers;
use crate::status::{CloseReason, Holder, RefusalReason, Status};

/// Defines the events: a struct for each, a method of [`Observer`], and the way to raise it. Those
/// with `and Log` are heard by the log, too.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $method:ident: $event:ident $(and $log:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            #[non_exhaustive]
            pub struct $event<'a> {
                /// The pool's name.
                pub pool: &'a str,
                $($(#[$field_doc])* pub $field: $type,)*
            }
        )*

        /// Hears the events of a pool. Every method is empty by default.
        ///
        /// Events are raised in the task or thread that causes them, with no lock held and after
        /// all waiters were woken. So a slow observer delays that task alone. A panic in an
        /// observer is caught and dropped. Without an observer nothing is measured for it.
        ///
        /// ```
        /// use std::sync::Arc;
        /// use std::sync::atomic::{AtomicU64, Ordering};
        /// use cenote::Pool;
        /// use cenote::event::{Acquired, Observer};
        ///
        /// #[derive(Default)]
        /// struct Count(AtomicU64);
        ///
        /// impl Observer for Count {
        ///     fn acquired(&self, event: &Acquired<'_>) {
        ///         println!("{} lent {} to {}", event.pool, event.id, event.site);
        ///         self.0.fetch_add(1, Ordering::Relaxed);
        ///     }
        /// }
        ///
        /// let count = Arc::new(Count::default());
        /// let pool = Pool::from_fn(async || Ok::<_, &str>(())).observer(count.clone()).build()?;
        /// drop(pool.acquire_blocking()?);
        /// assert_eq!(count.0.load(Ordering::Relaxed), 1);
        /// # Ok::<_, Box<dyn std::error::Error>>(())
        /// ```
        #[expect(unused_variables, reason = "the names document the events")]
        pub trait Observer: Send + Sync + 'static {
            $($(#[$doc])* fn $method(&self, event: &$event<'_>) {})*
        }

        impl<'a> Observers {
            $(
                #[inline]
                pub(crate) fn $method(&self, $($field: $type,)*) {
                    let is_logged = false $(|| $log::is_on())?;
                    if is_logged || self.any() {
                        let event = $event { pool: self.pool(), $($field,)* };
                        if is_logged {
                            self.write(|log| log.$method(&event));
                        }
                        if self.any() {
                            self.tell(|observer| observer.$method(&event));
                        }
                    }
                }
            )*
        }
    };
}

events! {
    /// A pool was built.
    pool_opened: PoolOpened {
        /// How many resources it may have.
        max_size: usize,
    }
    /// A pool was closed: it lends nothing any more.
    pool_closed: PoolClosed and Log {
        /// How many leases are still out.
        in_use: usize,
    }
    /// A resource is about to be opened.
    opening: Opening {}
    /// A resource was opened.
    opened: Opened and Log {
        /// Its number in this pool, from 1.
        id: u64,
        /// How long it took.
        took: Duration,
    }
    /// A resource could not be opened.
    open_failed: OpenFailed and Log {
        /// How long it took.
        took: Duration,
        /// Why.
        error: &'a (dyn Error + 'static),
    }
    /// A lease was handed out.
    acquired: Acquired {
        /// The number of the resource.
        id: u64,
        /// How long the caller waited; zero if it was served at once.
        waited: Duration,
        /// The line of code that acquired it.
        site: &'static Location<'static>,
    }
    /// A lease came back.
    released: Released {
        /// The number of the resource.
        id: u64,
        /// For how long it was out.
        held: Duration,
        /// The line of code that acquired it.
        site: &'static Location<'static>,
    }
    /// A lease was discarded by its holder. `released` was raised just before.
    discarded: Discarded {
        /// The number of the resource.
        id: u64,
        /// The line of code that acquired it.
        site: &'static Location<'static>,
    }
    /// A lease was detached: its resource left the pool with its holder.
    detached: Detached {
        /// The number of the resource.
        id: u64,
        /// The line of code that acquired it.
        site: &'static Location<'static>,
    }
    /// A resource was closed.
    closed: Closed and Log {
        /// The number of the resource.
        id: u64,
        /// Why.
        reason: CloseReason,
    }
    /// A check, a clean, a close or a hook failed, hung or panicked.
    callback_failed: CallbackFailed and Log {
        /// The number of the resource.
        id: u64,
        /// Which callback.
        callback: Callback,
        /// Its error, or what happened to it.
        message: &'a str,
    }
    /// An acquire timed out. Raised before its error is returned.
    timed_out: AcquireTimedOut {
        /// The line of code that called acquire.
        site: &'static Location<'static>,
        /// How long it waited.
        waited: Duration,
        /// The pool at that moment.
        status: &'a Status,
    }
    /// An acquire was refused before its time was over. Raised before its error is returned.
    refused: AcquireRefused {
        /// The line of code that called acquire.
        site: &'static Location<'static>,
        /// Why.
        reason: RefusalReason,
    }
    /// [`Pool::warm`](crate::Pool::warm) has ended.
    warmed: Warmed and Log {
        /// How many resources were opened meanwhile.
        opened: u64,
        /// How long it took.
        took: Duration,
        /// There are as many resources as there should be.
        complete: bool,
    }
    /// A lease is out for longer than `leak_after`. Raised once per lease.
    leaked: Leaked and Log {
        /// The lease.
        holder: &'a Holder,
    }
    /// A lease that was reported as leaked came back after all.
    returned_late: ReturnedLate and Log {
        /// The number of the resource.
        id: u64,
        /// For how long it was out.
        held: Duration,
        /// The line of code that acquired it.
        site: &'static Location<'static>,
    }
    /// Every lease was taken by a task that now waits for this pool.
    nested_acquire: NestedAcquire and Log {
        /// The line of code of one of the acquires that wait.
        site: &'static Location<'static>,
        /// The leases, the longest first.
        holders: &'a [Holder],
    }
    /// The circuit breaker changed its state.
    breaker_changed: BreakerChanged and Log {
        /// The state before.
        from: BreakerState,
        /// The state now.
        to: BreakerState,
        /// The error of the last open, if no open has succeeded since.
        cause: Option<&'a (dyn Error + 'static)>,
    }
    /// `max_size` changed.
    resized: Resized and Log {
        /// The size before.
        from: usize,
        /// The size now.
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
    /// [`Builder::before_acquire`](crate::Builder::before_acquire).
    BeforeAcquire,
    /// [`Builder::before_release`](crate::Builder::before_release).
    BeforeRelease,
}
