//! Settings: what each means, its default and its range.
//!
//! You need this module for the choices that some settings take, such as [`IdleOrder`]. [`Config`]
//! and [`ConfigError`] are also in the root of the crate.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Everything that can be set on a pool, as plain data.
///
/// `Pool::builder` has a setter for each field. Values are checked when the pool is built.
///
/// ```
/// use std::time::Duration;
/// use cenote::{Config, Pool};
///
/// let config = Config { max_size: 20, idle_timeout: None, ..Config::default() };
/// assert_eq!(config.acquire_timeout, Some(Duration::from_secs(5)));
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(())).config(config).build()?;
/// assert_eq!(pool.config().max_size, 20);
/// # Ok::<_, cenote::ConfigError>(())
/// ```
///
/// With the feature `serde` it can be read from a file. Durations are written as people write them
/// (`"30s"`, `"1h 30m"`). `"off"` stands for `None`. Unknown fields are refused.
///
/// ```
/// # #[cfg(feature = "serde")]
/// # fn main() -> Result<(), toml::de::Error> {
/// let file = r#"
///     max_size = 20
///     max_uses = "off"
///     max_lifetime = "1h 30m"
///     idle_order = "oldest"
/// "#;
/// let config: cenote::Config = toml::from_str(file)?;
/// assert_eq!(config.max_lifetime.map(|lifetime| lifetime.as_secs()), Some(5400));
/// assert_eq!(config.max_uses, None);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "serde"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// The pool's name, which is part of every error and event. Default: generated (`pool-1`). At
    /// least one character.
    pub name: Option<String>,
    /// How many resources may exist at once. Default 10, at least 1. [`Pool::resize`] changes it
    /// later.
    ///
    /// [`Pool::resize`]: crate::Pool::resize
    pub max_size: usize,
    /// How many resources are kept open, also while they are idle. Default 0, at most `max_size`.
    ///
    /// Nothing is opened for it before the first acquire: call [`Pool::warm`] to open them at once.
    ///
    /// [`Pool::warm`]: crate::Pool::warm
    pub min_size: usize,
    /// How many idle resources are kept ready, beside those that are lent. Default 0, at most
    /// `max_size`.
    ///
    /// Nothing is opened for it before the first acquire: call [`Pool::warm`] to open them at once.
    ///
    /// [`Pool::warm`]: crate::Pool::warm
    pub min_idle: usize,
    /// How long an acquire may take. Default 5 s, more than zero; `None`: for ever.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub acquire_timeout: Option<Duration>,
    /// How long one open may take. Default 10 s, more than zero; `None`: for ever.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub open_timeout: Option<Duration>,
    /// How many opens may run at once. Default 4, at least 1.
    ///
    /// An open that takes longer than a second no longer counts, and another one is begun for its
    /// waiter (a hedged open). So a hung open blocks no waiter, and more opens than this can be
    /// under way while the backend is slow, within `max_size`.
    pub max_opening: usize,
    /// What a failed open means for the waiters. Default [`OnOpenError::Fail`].
    pub on_open_error: OnOpenError,
    /// How long a resource may be idle before it is closed. `min_size` and `min_idle` resources
    /// stay. Default 5 min, more than zero; `None`: off.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub idle_timeout: Option<Duration>,
    /// How old a resource may become. Default 30 min, more than zero; `None`: off. A lease is not
    /// cut short: its resource is closed when it comes back.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub max_lifetime: Option<Duration>,
    /// Shortens each resource's `max_lifetime` by a random fraction up to this one, so that
    /// resources opened together do not expire together. Default 0.1 (10 %), from 0 to 1.
    pub lifetime_jitter: f64,
    /// How often a resource may be lent before it is closed. Default `None`: off. At least 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub max_uses: Option<u64>,
    /// How long an idle resource is trusted. If it was neither used nor checked for this long, it
    /// is checked before it is lent. Default 5 s; `None`: never checked before it is lent. Zero:
    /// checked before every acquire; `try_acquire` then finds nothing.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub check_after_idle: Option<Duration>,
    /// Whether every resource is checked when it comes back. Default false.
    pub check_on_return: bool,
    /// How long a check, or a `before_acquire` hook, may take. Default 2 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub check_timeout: Duration,
    /// How long cleaning, or a `before_release` hook, may take. Default 5 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub clean_timeout: Duration,
    /// How long closing may take. Until then the slot is not free. Default 5 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub close_timeout: Duration,
    /// How often idle resources are checked in the background. Default `None`: off. More than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub heartbeat_interval: Option<Duration>,
    /// The longest sleep of the upkeep task. It wakes earlier when something is due, so there is
    /// seldom a reason to change this. Default 30 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub upkeep_interval: Duration,
    /// How long a lease may be out before it is reported as leaked, with its call site. Default
    /// 30 s, more than zero; `None`: off.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub leak_after: Option<Duration>,
    /// How long an acquire may wait before a line in the [log](crate::logs) says so, with the lines
    /// of code that hold the resources. Default 1 s, more than zero; `None`: off. The first callers
    /// in line are looked at, once a second or this often if that is shorter.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub slow_acquire: Option<Duration>,
    /// How long a waiter may be queued while nothing comes back, before [`Pool::health`] says
    /// stuck. Default 5 s, more than zero.
    ///
    /// [`Pool::health`]: crate::Pool::health
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub stuck_after: Duration,
    /// Which idle resource is lent next. Default [`IdleOrder::Hot`].
    pub idle_order: IdleOrder,
    /// How many callers may wait for a return; more are rejected at once. Callers that wait for an
    /// open or a check do not count. Default `None`: no limit. Zero: an acquire fails at once while
    /// all resources are out.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub max_waiters: Option<usize>,
    /// How the pool treats a task that holds a lease and asks for another. A lease counts for the
    /// task that acquired it, also after it was moved to another. Default [`Nested::Report`].
    pub nested: Nested,
    /// What a failed [`Pool::warm`] means. Default [`WarmUp::Required`].
    ///
    /// [`Pool::warm`]: crate::Pool::warm
    pub warm_up: WarmUp,
    /// How many resources may be lent at once while the [breaker](crate::breaker) recovers. Leases
    /// from before do not count. Default 1, at least 1.
    pub probes: usize,
    /// Whether the pool proves by itself that the backend is back: while the breaker recovers, the
    /// pool opens and checks one resource before it lends any, so that no caller is spent as a
    /// probe. Meanwhile callers wait. Default true.
    pub self_probe: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: None,
            max_size: 10,
            min_size: 0,
            min_idle: 0,
            acquire_timeout: Some(Duration::from_secs(5)),
            open_timeout: Some(Duration::from_secs(10)),
            max_opening: 4,
            on_open_error: OnOpenError::Fail,
            idle_timeout: Some(Duration::from_secs(5 * 60)),
            max_lifetime: Some(Duration::from_secs(30 * 60)),
            lifetime_jitter: 0.1,
            max_uses: None,
            check_after_idle: Some(Duration::from_secs(5)),
            check_on_return: false,
            check_timeout: Duration::from_secs(2),
            clean_timeout: Duration::from_secs(5),
            close_timeout: Duration::from_secs(5),
            heartbeat_interval: None,
            upkeep_interval: Duration::from_secs(30),
            leak_after: Some(Duration::from_secs(30)),
            slow_acquire: Some(Duration::from_secs(1)),
            stuck_after: Duration::from_secs(5),
            idle_order: IdleOrder::Hot,
            max_waiters: None,
            nested: Nested::Report,
            warm_up: WarmUp::Required,
            probes: 1,
            self_probe: true,
        }
    }
}

/// What a failed open means for the waiters. See [`Builder::on_open_error`] for an example.
///
/// [`Builder::on_open_error`]: crate::Builder::on_open_error
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOpenError {
    /// The error goes to the oldest waiter at once.
    Fail,
    /// The open is tried again, with jittered exponential back-off, for as long as a caller waits.
    Retry,
}

/// Which idle resource is lent next. See [`Builder::idle_order`] for an example.
///
/// [`Builder::idle_order`]: crate::Builder::idle_order
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleOrder {
    /// LIFO: the resource that was used last, on this thread if possible, and that needs no check.
    /// So few resources stay in use, and the rest can be closed by `idle_timeout`.
    Hot,
    /// FIFO: exactly the resource that was idle for longest. So all resources are used alike.
    Oldest,
}

/// How the pool treats a task that holds a lease and asks for another. See [`Builder::nested`] for
/// an example.
///
/// [`Builder::nested`]: crate::Builder::nested
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nested {
    /// Nothing.
    Allow,
    /// An event is raised when every lease was taken by a task that now waits for this pool: within
    /// a second, or at the first timeout. The timeout error says so, too.
    Report,
    /// The second acquire of a task fails at once.
    Deny,
}

/// What a failed warm-up means. See [`Builder::warm_up`] for an example.
///
/// [`Builder::warm_up`]: crate::Builder::warm_up
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// [`warm`](crate::Pool::warm) returns the error.
    Required,
    /// `warm` returns `Ok`. The pool starts short, and is refilled in the background.
    BestEffort,
}

/// A number, or `None` for off: the argument of a setter. `5`, `Some(5)` and `None` are accepted.
///
/// With `Into<Option<u64>>` the type of the literal in `max_uses(5)` could not be inferred.
///
/// ```
/// use cenote::Pool;
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(()));
/// let pool = pool.max_uses(5).max_waiters(Some(3)).max_uses(None).build()?;
/// assert_eq!(pool.config().max_uses, None);
/// assert_eq!(pool.config().max_waiters, Some(3));
/// # Ok::<_, cenote::ConfigError>(())
/// ```
pub trait OrOff<T>: Into<Option<T>> {}

impl<T> OrOff<T> for T {}

impl<T> OrOff<T> for Option<T> {}

/// A setting that a pool cannot work with: its field, its value, and the values that are allowed.
///
/// ```
/// use cenote::Pool;
///
/// let built = Pool::from_fn(async || Ok::<_, &str>(())).max_size(2).min_size(3).build();
/// let error = built.unwrap_err();
/// assert_eq!((error.field(), error.value()), ("min_size", "3"));
/// assert_eq!(error.allowed(), "0 to `max_size` (2)");
/// assert_eq!(error.to_string(), "`min_size` is 3, allowed: 0 to `max_size` (2)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    value: String,
    allowed: String,
}

impl ConfigError {
    /// Returns the name of the field.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the value that was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the values that are allowed there.
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, .. } = self;
        write!(f, "`{field}` is {value}, allowed: {}", self.allowed)
    }
}

impl std::error::Error for ConfigError {}

/// A configuration that was checked, and has a name. Nothing is validated again.
#[derive(Debug)]
pub(crate) struct Limits(Config);

impl Deref for Limits {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.0
    }
}

/// Longer than any sensible setting, and short enough that adding it to the clock never overflows.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Fields of a config with their names.
macro_rules! named {
    ($config:ident: $($field:ident)*) => { [$((stringify!($field), $config.$field)),*] };
}

impl Limits {
    /// The only place that refuses a value.
    pub(crate) fn check(config: Config) -> Result<Self, ConfigError> {
        let c = &config;
        let text = "at least one character, or none";
        require(c.name.as_deref() != Some(""), "name", "\"\"", text)?;
        for (field, value) in named!(c: max_size max_opening probes) {
            require(value >= 1, field, value, "at least 1")?;
        }
        for (field, value) in named!(c: min_size min_idle) {
            let allowed = format!("0 to `max_size` ({})", c.max_size);
            require(value <= c.max_size, field, value, &allowed)?;
        }
        require(c.max_uses != Some(0), "max_uses", 0, "at least 1, or none")?;
        let jitter = c.lifetime_jitter;
        let is_part = (0.0..=1.0).contains(&jitter);
        require(is_part, "lifetime_jitter", jitter, "0 to 1")?;
        let allowed = "zero (every acquire) to ten years, or none (never)";
        let after = c.check_after_idle.unwrap_or_default();
        require(after <= LONGEST, "check_after_idle", shown(after), allowed)?;
        let optional = named!(c: acquire_timeout open_timeout idle_timeout max_lifetime
            heartbeat_interval leak_after slow_acquire);
        let required = named!(c: check_timeout clean_timeout close_timeout upkeep_interval
            stuck_after);
        let required = required.map(|(field, value)| (field, Some(value), ""));
        let optional = optional.map(|(field, value)| (field, value, ", or none"));
        for (field, value, or_none) in optional.into_iter().chain(required) {
            let Some(value) = value else { continue };
            let fits = !value.is_zero() && value <= LONGEST;
            let allowed = format!("more than zero and at most ten years{or_none}");
            require(fits, field, shown(value), &allowed)?;
        }
        Ok(Self(config))
    }

    /// `max_size` can change later. The new size is checked here, too.
    pub(crate) fn check_resize(&self, max_size: usize) -> Result<(), ConfigError> {
        let least = self.min_size.max(self.min_idle).max(1);
        let allowed = format!("at least {least} (`min_size` and `min_idle` must fit)");
        require(max_size >= least, "max_size", max_size, &allowed)
    }
}

fn shown(value: Duration) -> String {
    match value {
        Duration::ZERO => "0s".to_owned(),
        _ => format!("{value:?}"),
    }
}

pub(crate) fn require(
    holds: bool,
    field: &'static str,
    value: impl fmt::Display,
    allowed: &str,
) -> Result<(), ConfigError> {
    if holds {
        return Ok(());
    }
    let (value, allowed) = (value.to_string(), allowed.to_owned());
    Err(ConfigError {
        field,
        value,
        allowed,
    })
}
