//! What is asked of, and done to, the whole pool.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::breaker::BreakerState;
use crate::config::ConfigError;
use crate::ledger::{Orders, Outcome};
use crate::manager::Manager;
use crate::observer::Resized;
use crate::pool::Pool;
use crate::pooled::Pooled;
use crate::rt;
use crate::shared::{Book, Place};
use crate::status::{Health, Holder, Leftover, Reason, Status};
use crate::upkeep;
use crate::watcher::Watcher;

impl<M: Manager + 'static> Pool<M> {
    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The manager.
    pub fn manager(&self) -> &M {
        &self.shared.manager
    }

    /// One consistent snapshot.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let lease = pool.acquire().await?;
    /// let status = pool.status();
    /// assert_eq!((status.in_use, status.idle, status.total), (1, 0, 1));
    /// # Ok(()) }
    /// ```
    pub fn status(&self) -> Status {
        self.shared.ledger_off_trays().status(rt::now())
    }

    /// Busy, stuck, or down? Acquires nothing: what a readiness probe should ask.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(1).build()?;
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
        self.shared.ledger_off_trays().health(rt::now())
    }

    /// Who holds what, the longest first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let lease = pool.acquire().await?;
    /// let holder = &pool.leases()[0];
    /// assert_eq!(holder.id, cenote::Lease::id(&lease));
    /// println!("{holder}"); // resource 1 at src/main.rs:12:34 for 3.2s by task 17
    /// # Ok(()) }
    /// ```
    pub fn leases(&self) -> Vec<Holder> {
        self.shared.ledger_off_trays().holders(rt::now())
    }

    /// Changes `max_size`. Grows at once; shrinks by what is idle, and by the rest as leases come home.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let (first, second) = (pool.acquire().await?, pool.acquire().await?);
    /// pool.resize(1)?;
    /// drop(first); // one too many: closed
    /// assert_eq!(pool.status().total, 1);
    /// assert!(pool.resize(0).is_err());
    /// # drop(second);
    /// # Ok(()) }
    /// ```
    pub fn resize(&self, max_size: usize) -> Result<(), ConfigError> {
        self.shared.limits.check_resize(max_size)?;
        let from = self.order(|book| book.resize(max_size, rt::now()));
        let event = Resized {
            pool: self.name(),
            from,
            to: max_size,
        };
        self.shared
            .observers
            .tell(|observer| observer.resized(&event));
        Ok(())
    }

    /// Retires everything that is open now: what is idle is closed at once, the rest when it comes home. For failover and rotated secrets.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
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

    /// As [`invalidate`](Pool::invalidate), spread evenly over `over`, so that the backend is not stormed.
    pub fn invalidate_over(&self, over: Duration) {
        self.order(|book| ((), book.invalidate(over, rt::now())));
    }

    /// Closes the idle resources that `keep` says no to. Each is in nobody's hands while `keep` looks at it. If `keep` panics, nothing is
    /// closed for it, and the panic goes on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// drop(pool.acquire().await?);
    /// pool.retain(|text| !text.is_empty());
    /// assert_eq!(pool.status().idle, 0);
    /// # Ok(()) }
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&mut M::Resource) -> bool) {
        let idle = self.shared.ledger_off_trays().idle();
        for (slot, id) in idle {
            let looked_at = self.shared.ledger_off_trays().look_at(slot, id, rt::now());
            let Some(mut pooled) = looked_at else {
                continue;
            };
            let kept = catch_unwind(AssertUnwindSafe(|| keep(&mut pooled.resource)));
            self.order(|book| match kept {
                Ok(false) => (
                    (),
                    book.judged(slot, pooled, Outcome::Unfit(Reason::Refused), rt::now()),
                ),
                Ok(true) | Err(_) => ((), book.put_back(slot, pooled, rt::now())),
            });
            if let Err(panic) = kept {
                resume_unwind(panic);
            }
        }
    }

    /// Lends nothing until [`resume`](Pool::resume): acquires wait, and their deadlines run. Leases go on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// pool.suspend();
    /// assert!(pool.try_acquire()?.is_none());
    /// pool.resume();
    /// assert!(pool.acquire().await.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn suspend(&self) {
        self.shared.ledger_off_trays().suspend();
    }

    /// Lends again.
    pub fn resume(&self) {
        self.order(|book| ((), book.resume(rt::now())));
    }

    /// Stops the upkeep (eviction, lifetime, heartbeat, refill, leak reports) without closing.
    pub fn pause_upkeep(&self) {
        self.shared.ledger_off_trays().pause();
    }

    /// Goes on with the upkeep.
    pub fn resume_upkeep(&self) {
        self.order(|book| ((), book.unpause(rt::now())));
    }

    /// Whether the pool lends.
    pub fn breaker_state(&self) -> BreakerState {
        self.shared.ledger().breaker().state
    }

    /// Makes the breaker active by hand: the pool lends.
    pub fn activate(&self) {
        self.shared
            .set_breaker(None, BreakerState::Active, Place::here());
    }

    /// Makes the breaker inactive by hand: every acquire, and everybody who waits, is told `Unavailable` at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// use cenote::{AcquireError, BreakerState};
    ///
    /// pool.deactivate();
    /// assert_eq!(pool.breaker_state(), BreakerState::Inactive);
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Unavailable { .. })));
    /// pool.activate();
    /// assert!(pool.acquire().await.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn deactivate(&self) {
        self.shared
            .set_breaker(None, BreakerState::Inactive, Place::here());
    }

    /// Lets the breaker recover by hand: at most `probes` resources are out at once until the strategy decides.
    pub fn recover(&self) {
        self.shared
            .set_breaker(None, BreakerState::Recovering, Place::here());
    }

    /// Closes the pool for good. New acquires and everybody who waits are told `Closed` at once, what is idle is closed, and leases are closed
    /// as they come home. Closing twice is closing once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// use cenote::AcquireError;
    ///
    /// pool.close();
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Closed { .. })));
    /// # Ok(()) }
    /// ```
    pub fn close(&self) {
        self.shared.close(Place::here());
    }

    /// As [`close`](Pool::close), and waits up to `limit` until everything has come home and is closed. Answers with what was left then:
    /// nothing, if all went well.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
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
    /// The pool is closed by the first poll. Dropping this future only stops the waiting.
    pub async fn close_within(&self, limit: Duration) -> Leftover {
        upkeep::start(&self.shared);
        self.shared.close(Place::Task);
        let mut timer = pin!(rt::sleep_until(rt::now().checked_add(limit)));
        let mut watcher = Watcher::new(&self.shared);
        poll_fn(|context| {
            watcher.watch(context);
            let (drained, mut orders) = {
                let ledger = self.shared.ledger_off_trays();
                (ledger.is_drained(), ledger.remind(rt::now()))
            };
            self.shared.carry_out(&mut orders, Place::Task);
            if drained {
                Poll::Ready(())
            } else {
                timer.as_mut().poll(context)
            }
        })
        .await;
        let now = rt::now();
        let ledger = self.shared.ledger_off_trays();
        Leftover {
            leases: ledger.holders(now),
            unfinished: ledger.unfinished(),
        }
    }

    /// Was it closed?
    pub fn is_closed(&self) -> bool {
        self.shared.ledger().is_closed()
    }

    /// The wakers of all queued waiters that were not woken since their last poll. For the checks of this workspace: the waker of every
    /// pending acquire is here, or was woken.
    #[cfg(any(cenote_model, feature = "_sound"))]
    #[doc(hidden)]
    pub fn queued_wakers(&self) -> Vec<std::task::Waker> {
        self.shared.ledger().queued_wakers()
    }

    /// One call to the ledger, and its orders carried out.
    fn order<T>(&self, call: impl FnOnce(&mut Book<M>) -> (T, Orders<Box<Pooled<M>>>)) -> T {
        let (answer, mut orders) = call(&mut self.shared.ledger_off_trays());
        self.shared.carry_out(&mut orders, Place::here());
        answer
    }
}
