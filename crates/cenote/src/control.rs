//! Operations on the whole pool: look at it, resize it, suspend it, close it.

use std::sync::Arc;
use std::time::Duration;

use crate::annex::both;
use crate::breaker::Breaker;
use crate::config::{Config, ConfigError};
use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry::Living;
use crate::shell::carry_out::Place;
use crate::shell::kind::{Kind, Threads};
use crate::shell::shared::{PoolLedger, PoolOrders};
use crate::status::{Health, Holder, Leftover, Status};
use crate::time::{self, Moment};

impl<M: Manager + 'static> Pool<M> {
    /// Returns the pool's name.
    ///
    /// ```
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).name("sessions").build()?;
    /// assert_eq!(pool.name(), "sessions");
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the manager.
    ///
    /// ```
    /// struct Sessions {
    ///     host: &'static str,
    /// }
    ///
    /// impl cenote::Manager for Sessions {
    ///     type Resource = ();
    ///     type Error = String;
    ///
    ///     async fn open(&self) -> Result<(), String> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let pool = cenote::Pool::builder(Sessions { host: "db1" }).build()?;
    /// assert_eq!(pool.manager().host, "db1");
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn manager(&self) -> &M {
        &self.shared.manager
    }

    /// Returns the settings that are in effect: with the name of the pool, also if it was
    /// generated, and with the present `max_size`.
    ///
    /// ```
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).min_idle(2).build()?;
    /// pool.resize(20)?;
    /// let config = pool.config();
    /// assert_eq!((config.min_idle, config.max_size), (2, 20));
    /// assert_eq!(config.name.as_deref(), Some(pool.name()));
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn config(&self) -> Config {
        Living::config(&*self.shared)
    }

    /// Returns one consistent snapshot of the pool.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let _lease = pool.acquire().await?;
    /// let status = pool.status();
    /// assert_eq!((status.in_use, status.idle, status.total), (1, 0, 1));
    /// # Ok(()) }
    /// ```
    pub fn status(&self) -> Status {
        self.sum(|part| Living::status(&*part.shared), Status::and)
    }

    /// Returns whether the pool works, is busy, stuck or down. It acquires nothing, so a readiness
    /// probe can ask it at any time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// use cenote::Health;
    ///
    /// assert_eq!(pool.health(), Health::Unproven, "nothing was opened yet");
    /// drop(pool.acquire().await?);
    /// assert_eq!(pool.health(), Health::Healthy);
    /// let _held = pool.acquire().await?;
    /// assert_eq!(pool.health(), Health::Busy);
    /// assert!(pool.health().is_ready());
    /// # Ok(()) }
    /// ```
    pub fn health(&self) -> Health {
        self.sum(|part| Living::health(&*part.shared), Health::and)
    }

    /// Returns every lease that is out, the longest first: which resource, since when, and the line
    /// of code that acquired it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let lease = pool.acquire().await?;
    /// let holder = &pool.leases()[0];
    /// assert_eq!(holder.id, cenote::Lease::id(&lease));
    /// println!("{holder}"); // resource 1 at src/main.rs:12:34 for 3.2s by task 17
    /// # Ok(()) }
    /// ```
    pub fn leases(&self) -> Vec<Holder> {
        self.sum(|part| Living::leases(&*part.shared), both)
    }

    /// Changes `max_size`. The pool grows at once. It shrinks by idle resources now, and by the
    /// others as they come back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(2).build()?;
    /// let (first, _second) = (pool.acquire().await?, pool.acquire().await?);
    /// pool.resize(1)?;
    /// drop(first); // one too many: closed
    /// assert_eq!(pool.status().total, 1);
    /// assert!(pool.resize(0).is_err());
    /// # Ok(()) }
    /// ```
    pub fn resize(&self, max_size: usize) -> Result<(), ConfigError> {
        self.shared.resize(max_size)
    }

    /// Retires all resources that are open now, after a failover or when a secret was rotated. Idle
    /// resources are closed at once, the others when they come back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::Lease;
    ///
    /// let before = Lease::id(&pool.acquire().await?);
    /// pool.invalidate();
    /// assert_ne!(Lease::id(&pool.acquire().await?), before);
    /// # Ok(()) }
    /// ```
    pub fn invalidate(&self) {
        self.invalidate_over(Duration::ZERO);
    }

    /// As [`invalidate`](Pool::invalidate), spread evenly over `over`, so that the backend is not
    /// stormed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).min_size(4).build()?;
    /// pool.warm().await?;
    /// pool.invalidate_over(Duration::from_secs(40)); // one now, one each 10 seconds
    /// assert_eq!(pool.status().closes.total(), 1);
    /// tokio::time::sleep(Duration::from_secs(31)).await;
    /// assert_eq!(pool.status().closes.total(), 4);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_over(&self, over: Duration) {
        self.order_all(|ledger, now, orders| ledger.invalidate(over, now, orders));
    }

    /// Closes the idle resources for which `keep` returns false. A resource cannot be lent while
    /// `keep` looks at it. If `keep` panics, its resource stays, and the panic goes on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(String::new())).build()?;
    /// drop(pool.acquire().await?);
    /// pool.retain(|text| !text.is_empty());
    /// assert_eq!(pool.status().idle, 0);
    /// # Ok(()) }
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&mut M::Resource) -> bool) {
        for part in self.parts() {
            part.shared.retain(&mut keep);
        }
    }

    /// Stops lending until [`resume`](Pool::resume). Acquires wait, and can time out. Leases that
    /// are out stay out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// drop(pool.acquire().await?);
    /// pool.suspend();
    /// assert!(pool.try_acquire()?.is_none());
    /// pool.resume();
    /// assert!(pool.try_acquire()?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn suspend(&self) {
        self.order_all(|ledger, _, _| ledger.suspend());
    }

    /// Lends again after [`suspend`](Pool::suspend), which has an example. Waiters are served at
    /// once.
    pub fn resume(&self) {
        self.order_all(|ledger, now, orders| ledger.resume(now, orders));
    }

    /// From now on an open that fails because the backend has too many connections
    /// ([`ErrorClass::Overloaded`](crate::error::ErrorClass::Overloaded)) is tried again for as
    /// long as a caller waits, whatever [`Config::on_open_error`](crate::Config::on_open_error)
    /// says. Callers get no error but their own timeout, and the breaker counts no failure. A fleet
    /// of pools that share the connections of a server sets this: there a place becomes free.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::atomic::{AtomicU32, Ordering};
    /// use cenote::error::ErrorClass;
    ///
    /// # struct Busy(AtomicU32);
    /// # impl cenote::Manager for Busy {
    /// #     type Resource = ();
    /// #     type Error = std::io::Error;
    /// #     async fn open(&self) -> Result<(), std::io::Error> {
    /// #         match self.0.fetch_add(1, Ordering::Relaxed) {
    /// #             0 => Err(std::io::Error::other("too many connections")),
    /// #             _ => Ok(()),
    /// #         }
    /// #     }
    /// #     fn classify(&self, _: &std::io::Error) -> ErrorClass { ErrorClass::Overloaded }
    /// # }
    /// # let manager = Busy(AtomicU32::new(0)); // full at the first open
    /// let pool = cenote::Pool::builder(manager).build()?;
    /// pool.wait_for_places();
    /// drop(pool.acquire().await?); // it had to wait for a place at the backend
    /// assert_eq!(pool.status().open_failed, 1);
    /// # Ok(()) }
    /// ```
    pub fn wait_for_places(&self) {
        self.order_all(|ledger, _, _| ledger.wait_for_places());
    }

    /// Stops the upkeep until [`resume_upkeep`](Pool::resume_upkeep): eviction, lifetime,
    /// heartbeat, refill and leak reports. The pool lends as before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use tokio::time::sleep;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.idle_timeout(Duration::from_secs(10)).build()?;
    /// drop(pool.acquire().await?);
    /// pool.pause_upkeep();
    /// sleep(Duration::from_secs(60)).await;
    /// assert_eq!(pool.status().idle, 1);
    /// pool.resume_upkeep();
    /// sleep(Duration::from_secs(1)).await;
    /// assert_eq!(pool.status().idle, 0);
    /// # Ok(()) }
    /// ```
    pub fn pause_upkeep(&self) {
        self.order_all(|ledger, _, _| ledger.pause());
    }

    /// Goes on with the upkeep after [`pause_upkeep`](Pool::pause_upkeep), which has an example.
    /// Overdue jobs are done at once.
    pub fn resume_upkeep(&self) {
        self.order_all(|ledger, now, orders| ledger.unpause(now, orders));
    }

    /// Sets a text that becomes part of every timeout error, or takes it away. It is for a layer
    /// that limits the pool from outside, and stands in place of the advice to raise `max_size` or
    /// to call `resume`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// let _held = pool.acquire().await?;
    /// pool.set_note(Some("at night there is one resource".into()));
    /// let error = pool.acquire().await.unwrap_err().to_string();
    /// assert!(error.contains("; at night there is one resource"), "{error}");
    /// # Ok(()) }
    /// ```
    pub fn set_note(&self, note: Option<Arc<str>>) {
        for part in self.parts() {
            part.shared.ledger().note.clone_from(&note);
        }
    }

    /// Returns the circuit breaker of this pool, to be read or operated by hand.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::breaker::BreakerState;
    ///
    /// assert_eq!(pool.breaker().state(), BreakerState::Active);
    /// pool.breaker().trip();
    /// assert!(pool.acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn breaker(&self) -> Breaker<'_, M> {
        Breaker { pool: self }
    }

    /// Closes the pool for good. New acquires and all waiters fail with `Closed` at once. Idle
    /// resources are closed now, and the others as they come back. Closing twice does no harm.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::AcquireError;
    ///
    /// pool.close();
    /// assert!(pool.is_closed());
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Closed { .. })));
    /// # Ok(()) }
    /// ```
    pub fn close(&self) {
        self.close_in(Threads::<M>::here());
    }

    pub(crate) fn close_in(&self, place: Place) {
        for part in self.parts() {
            part.shared.close(place);
        }
    }

    /// As [`close`](Pool::close), and waits up to `limit` until all leases have come back and all
    /// resources are closed. Returns the leases and the work that were left then: none, if all went
    /// well.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::time::Duration;
    ///
    /// let lease = pool.acquire().await?;
    /// let left = pool.close_within(Duration::from_millis(5)).await;
    /// assert_eq!(left.leases.len(), 1);
    /// drop(lease);
    /// assert!(pool.close_within(Duration::from_secs(1)).await.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// The first poll closes the pool. Dropping this future only stops the waiting.
    pub async fn close_within(&self, limit: Duration) -> Leftover {
        let Some(annex) = self.annex() else {
            return self.shared.close_within(limit).await;
        };
        let began = time::now();
        annex.close_in(Place::Task);
        let left = self.shared.close_within(limit).await;
        let took = time::now().saturating_duration_since(began);
        let rest = limit.saturating_sub(took);
        left.and(Box::pin(annex.close_within(rest)).await)
    }

    /// Returns whether the pool was closed. [`close`](Pool::close) has an example.
    pub fn is_closed(&self) -> bool {
        self.shared.ledger().is_closed()
    }

    /// The wakers of all queued waiters that were not woken since their last poll. For the checks
    /// of this workspace: the waker of every pending acquire is here, or was woken.
    #[cfg(any(cenote_model, feature = "_sound"))]
    #[doc(hidden)]
    pub fn queued_wakers(&self) -> Vec<std::task::Waker> {
        self.shared.ledger().queued_wakers()
    }

    fn order_all(
        &self,
        call: impl Fn(&mut PoolLedger<Threads<M>>, Moment, &mut PoolOrders<Threads<M>>),
    ) {
        for part in self.parts() {
            part.shared.order(Threads::<M>::here(), &call);
            part.shared.uppers.tell();
        }
    }
}
