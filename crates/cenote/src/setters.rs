//! The builder's setters: one for each field of [`Config`], where the meaning and the default are.

use std::time::Duration;

use crate::builder::Builder;
use crate::config::{Config, IdleOrder, Nested, OnOpenError, OrOff, WarmUp};
use crate::manager::Manager;

macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {
        impl<M: Manager + 'static> Builder<M> {$(
            $(#[$doc])*
            pub fn $field(mut self, $field: $type) -> Self {
                self.config.$field = $field.into();
                self
            }
        )*}
    };
}

impl<M: Manager + 'static> Builder<M> {
    /// Takes all settings from `config`, also those that were set before.
    ///
    /// ```
    /// use cenote::{Config, Pool};
    ///
    /// let config = Config { max_size: 3, ..Config::default() };
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(())).config(config).build()?;
    /// assert_eq!(pool.status().max_size, 3);
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets [`Config::name`].
    ///
    /// ```
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).name("sessions").build()?;
    /// assert_eq!(pool.name(), "sessions");
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }
}

setters! {
    /// Sets [`Config::max_size`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.max_size(1).build()?;
    /// let _only = pool.acquire().await?;
    /// assert!(pool.try_acquire()?.is_none());
    /// # Ok(()) }
    /// ```
    max_size: usize;
    /// Sets [`Config::min_size`]. Example: [`min_idle`](Builder::min_idle).
    min_size: usize;
    /// Sets [`Config::min_idle`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.min_size(3).min_idle(1).build()?;
    /// assert_eq!(pool.status().total, 0, "nothing is opened before the first acquire");
    /// pool.warm().await?;
    /// assert_eq!(pool.status().total, 3);
    /// # Ok(()) }
    /// ```
    min_idle: usize;
    /// Sets [`Config::acquire_timeout`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.max_size(1).acquire_timeout(Duration::from_secs(1)).build()?;
    /// let _only = pool.acquire().await?;
    /// let error = pool.acquire().await.unwrap_err().to_string();
    /// assert!(error.contains("no resource within 1.0s: 1 of 1 in use"), "{error}");
    /// # Ok(()) }
    /// ```
    acquire_timeout: impl Into<Option<Duration>>;
    /// Sets [`Config::open_timeout`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let pool = cenote::Pool::from_fn(std::future::pending::<Result<(), &str>>)
    ///     .open_timeout(Duration::from_secs(2))
    ///     .build()?;
    /// let error = pool.acquire().await.unwrap_err().to_string();
    /// assert!(error.contains("opening took longer than 2.0s"), "{error}");
    /// # Ok(()) }
    /// ```
    open_timeout: impl Into<Option<Duration>>;
    /// Sets [`Config::max_opening`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let pool = cenote::Pool::from_fn(std::future::pending::<Result<(), &str>>)
    ///     .max_opening(1)
    ///     .build()?;
    /// let (first, second) = (pool.acquire(), pool.acquire());
    /// # let both = async { tokio::join!(first, second) };
    /// let _ = tokio::time::timeout(Duration::from_millis(500), both).await;
    /// assert_eq!(pool.status().opening, 1);
    /// # Ok(()) }
    /// ```
    max_opening: usize;
    /// Sets [`Config::on_open_error`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use cenote::config::OnOpenError;
    ///
    /// static TRIES: AtomicU32 = AtomicU32::new(0);
    ///
    /// let pool = cenote::Pool::from_fn(async || match TRIES.fetch_add(1, Ordering::Relaxed) {
    ///     0 => Err("the server is starting"),
    ///     _ => Ok("connected"),
    /// });
    /// let pool = pool.on_open_error(OnOpenError::Retry).build()?;
    /// assert_eq!(*pool.acquire().await?, "connected");
    /// # Ok(()) }
    /// ```
    on_open_error: OnOpenError;
    /// Sets [`Config::idle_timeout`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use cenote::CloseReason;
    /// # use tokio::time::sleep;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.idle_timeout(Duration::from_secs(60)).build()?;
    /// drop(pool.acquire().await?);
    /// sleep(Duration::from_secs(61)).await;
    /// assert_eq!(pool.status().closes.by(CloseReason::Idle), 1);
    /// # Ok(()) }
    /// ```
    idle_timeout: impl Into<Option<Duration>>;
    /// Sets [`Config::max_lifetime`]. Example: [`lifetime_jitter`](Builder::lifetime_jitter).
    max_lifetime: impl Into<Option<Duration>>;
    /// Sets [`Config::lifetime_jitter`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use cenote::CloseReason;
    /// # use tokio::time::sleep;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.max_lifetime(Duration::from_secs(60)).lifetime_jitter(0.5).build()?;
    /// let lease = pool.acquire().await?;
    /// sleep(Duration::from_secs(61)).await;
    /// drop(lease); // its lifetime was between 30 and 60 seconds
    /// assert_eq!(pool.status().closes.by(CloseReason::Lifetime), 1);
    /// # Ok(()) }
    /// ```
    lifetime_jitter: f64;
    /// Sets [`Config::max_uses`]. `None` sets it back to off.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.max_uses(2).build()?;
    /// for id in [1, 1, 2] {
    ///     assert_eq!(cenote::Lease::id(&pool.acquire().await?), id);
    /// }
    /// # Ok(()) }
    /// ```
    max_uses: impl OrOff<u64>;
    /// Sets [`Config::check_after_idle`]. Example: [`check_on_return`](Builder::check_on_return).
    check_after_idle: impl Into<Option<Duration>>;
    /// Sets [`Config::check_on_return`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::{CloseReason, Lease};
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(7))
    ///     .check_with(async |number: &mut i32| *number == 7)
    ///     .check_after_idle(None)
    ///     .check_on_return(true)
    ///     .build()?;
    /// let mut number = pool.acquire().await?;
    /// *number = 8;
    /// Lease::release(number).await;
    /// assert_eq!(pool.status().closes.by(CloseReason::FailedCheck), 1);
    /// # Ok(()) }
    /// ```
    check_on_return: bool;
    /// Sets [`Config::check_timeout`]. Example: [`close_timeout`](Builder::close_timeout).
    check_timeout: Duration;
    /// Sets [`Config::clean_timeout`]. Example: [`close_timeout`](Builder::close_timeout).
    clean_timeout: Duration;
    /// Sets [`Config::close_timeout`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()))
    ///     .close_with(|()| std::future::pending()) // hangs
    ///     .check_timeout(Duration::from_secs(1))
    ///     .clean_timeout(Duration::from_secs(1))
    ///     .close_timeout(Duration::from_secs(1))
    ///     .build()?;
    /// drop(pool.acquire().await?);
    /// assert!(pool.close_within(Duration::from_secs(2)).await.is_empty());
    /// # Ok(()) }
    /// ```
    close_timeout: Duration;
    /// Sets [`Config::heartbeat_interval`]. Example: [`upkeep_interval`](Builder::upkeep_interval).
    heartbeat_interval: impl Into<Option<Duration>>;
    /// Sets [`Config::upkeep_interval`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use cenote::CloseReason;
    /// # use tokio::time::sleep;
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()))
    ///     .check_with(async |_: &mut ()| false)
    ///     .heartbeat_interval(Duration::from_secs(10))
    ///     .upkeep_interval(Duration::from_secs(60)) // a heartbeat that is due comes first
    ///     .build()?;
    /// drop(pool.acquire().await?);
    /// sleep(Duration::from_secs(11)).await;
    /// assert_eq!(pool.status().closes.by(CloseReason::FailedCheck), 1);
    /// # Ok(()) }
    /// ```
    upkeep_interval: Duration;
    /// Sets [`Config::leak_after`]. Example: [`stuck_after`](Builder::stuck_after).
    leak_after: impl Into<Option<Duration>>;
    /// Sets [`Config::slow_acquire`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.slow_acquire(Duration::from_millis(200)).build()?;
    /// assert_eq!(pool.config().slow_acquire, Some(Duration::from_millis(200)));
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    slow_acquire: impl Into<Option<Duration>>;
    /// Sets [`Config::stuck_after`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use cenote::Health;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
    /// let pool = pool
    ///     .leak_after(Duration::from_secs(2))
    ///     .stuck_after(Duration::from_secs(3))
    ///     .build()?;
    /// let _forgotten = pool.acquire().await?;
    /// let waits = pool.acquire_within(Duration::from_secs(4)).await;
    /// assert!(waits.is_err());
    /// assert_eq!(pool.status().leaked, 1);
    /// assert!(matches!(pool.health(), Health::Stuck { .. }));
    /// # Ok(()) }
    /// ```
    stuck_after: Duration;
    /// Sets [`Config::idle_order`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::config::IdleOrder;
    /// use cenote::{Lease, Pool};
    ///
    /// for (order, next) in [(IdleOrder::Hot, 2), (IdleOrder::Oldest, 1)] {
    ///     let pool = Pool::from_fn(async || Ok::<_, &str>(())).idle_order(order).build()?;
    ///     let (first, second) = (pool.acquire().await?, pool.acquire().await?);
    ///     drop(first);
    ///     drop(second);
    ///     assert_eq!(Lease::id(&pool.acquire().await?), next);
    /// }
    /// # Ok(()) }
    /// ```
    idle_order: IdleOrder;
    /// Sets [`Config::max_waiters`]. `None` sets it back to no limit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::AcquireError;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.max_size(1).max_waiters(0).build()?;
    /// let _only = pool.acquire().await?;
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Rejected { waiting: 0, .. })));
    /// # Ok(()) }
    /// ```
    max_waiters: impl OrOff<usize>;
    /// Sets [`Config::nested`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::AcquireError;
    /// # use cenote::config::Nested;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.nested(Nested::Deny).build()?;
    /// let _first = pool.acquire().await?;
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Nested { .. })));
    /// # Ok(()) }
    /// ```
    nested: Nested;
    /// Sets [`Config::warm_up`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::config::WarmUp;
    /// for (warm_up, is_ok) in [(WarmUp::Required, false), (WarmUp::BestEffort, true)] {
    ///     let pool = cenote::Pool::from_fn(async || Err::<(), _>("connection refused"));
    ///     let pool = pool.warm_up(warm_up).build()?;
    ///     assert_eq!(pool.warm().await.is_ok(), is_ok);
    /// }
    /// # Ok(()) }
    /// ```
    warm_up: WarmUp;
    /// Sets [`Config::probes`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let pool = pool.probes(2).build()?;
    /// pool.breaker().probe();
    /// let _probes = (pool.acquire().await?, pool.acquire().await?);
    /// assert!(pool.acquire_within(Duration::from_millis(5)).await.is_err());
    /// # Ok(()) }
    /// ```
    probes: usize;
    /// Sets [`Config::self_probe`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// for (self_probe, idle) in [(true, 1), (false, 0)] {
    ///     let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    ///     let pool = pool.self_probe(self_probe).build()?;
    ///     pool.breaker().probe();
    ///     tokio::task::yield_now().await;
    ///     tokio::task::yield_now().await;
    ///     assert_eq!(pool.status().idle, idle, "no caller has asked yet");
    /// }
    /// # Ok(()) }
    /// ```
    self_probe: bool;
}

/// Calls a macro with the name and the type of each setting but `name`, for the builders of crates
/// that pass them on. So none of these builders lacks a setting.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_setting {
    ($list:ident) => {
        $list! {
            max_size: usize; min_size: usize; min_idle: usize; max_opening: usize; probes: usize;
            acquire_timeout: impl Into<Option<std::time::Duration>>;
            open_timeout: impl Into<Option<std::time::Duration>>;
            idle_timeout: impl Into<Option<std::time::Duration>>;
            max_lifetime: impl Into<Option<std::time::Duration>>; lifetime_jitter: f64;
            check_after_idle: impl Into<Option<std::time::Duration>>; check_on_return: bool;
            check_timeout: std::time::Duration; clean_timeout: std::time::Duration;
            close_timeout: std::time::Duration; upkeep_interval: std::time::Duration;
            heartbeat_interval: impl Into<Option<std::time::Duration>>;
            leak_after: impl Into<Option<std::time::Duration>>; stuck_after: std::time::Duration;
            slow_acquire: impl Into<Option<std::time::Duration>>; self_probe: bool;
            max_uses: impl $crate::config::OrOff<u64>;
            max_waiters: impl $crate::config::OrOff<usize>;
            on_open_error: $crate::config::OnOpenError; idle_order: $crate::config::IdleOrder;
            nested: $crate::config::Nested; warm_up: $crate::config::WarmUp;
        }
    };
}
