//! Configuration: plain data, checked once. Behind [`Limits`] nothing is validated again.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Everything that can be set on a pool, as plain data.
///
/// With the feature `serde` it can be read from a file; durations are written as people write them (`"30s"`,
/// `"1h 30m"`), and `"off"` stands for none. Unknown fields are refused. Values are checked when the pool is built.
///
/// ```
/// use std::time::Duration;
/// use cenote::Config;
///
/// let config = Config { max_size: 20, idle_timeout: None, ..Config::default() };
/// assert_eq!(config.acquire_timeout, Some(Duration::from_secs(5)));
/// ```
#[cfg_attr(
    feature = "serde",
    doc = r#"
From a file:

```
let config: cenote::Config = toml::from_str("max_size = 20\nidle_timeout = \"off\"\nmax_lifetime = \"1h 30m\"")?;
assert_eq!(config.max_lifetime.map(|lifetime| lifetime.as_secs()), Some(5400));
# Ok::<_, toml::de::Error>(())
```
"#
)]
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// Shown in every error, event and metric. Default: generated (`pool-1`). At least one character.
    pub name: Option<String>,
    /// How many resources may exist at once. Default 10, at least 1.
    pub max_size: usize,
    /// How many are kept in total, even when idle. Default 0, at most `max_size`.
    pub min_size: usize,
    /// How many spare ones are kept ready. Default 0, at most `max_size`.
    pub min_idle: usize,
    /// How long an acquire may take. Default 5 s, more than zero; none = for ever.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub acquire_timeout: Option<Duration>,
    /// How long one open may take. Default 10 s, more than zero; none = for ever.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub open_timeout: Option<Duration>,
    /// How many opens may run at once. Default 4, at least 1.
    pub max_opening: usize,
    /// What a failed open means for those who wait. Default [`OnOpenError::Fail`].
    pub on_open_error: OnOpenError,
    /// How long a resource may sit unused before it is closed, down to `min_size`. Default 5 min, more than zero; none = off.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub idle_timeout: Option<Duration>,
    /// How long a resource may live. Default 30 min, more than zero; none = off.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub max_lifetime: Option<Duration>,
    /// By which random part of it `max_lifetime` is shortened, drawn at birth, so that what was opened together is not closed
    /// together. Default 0.1 (10 %), from 0 to 1.
    pub lifetime_jitter: f64,
    /// How often a resource may be lent before it is closed. Default none = off, at least 1.
    pub max_uses: Option<u64>,
    /// After how long without proof of life an idle resource is checked before it is lent. Default 5 s; zero = on every acquire (then
    /// `try_acquire` finds nothing), none = never.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub check_after_idle: Option<Duration>,
    /// Check every resource when it comes back. Default false.
    pub check_on_return: bool,
    /// How long a check, or a `before_acquire` hook, may take. Default 2 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane"))]
    pub check_timeout: Duration,
    /// How long cleaning, or a `before_release` hook, may take. Default 5 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane"))]
    pub clean_timeout: Duration,
    /// How long closing may take; until then the slot is not free. Default 5 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane"))]
    pub close_timeout: Duration,
    /// How often idle resources are checked in the background. Default none = off, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub heartbeat_interval: Option<Duration>,
    /// The longest sleep of the upkeep task, which wakes exactly when something is due. Default 30 s, more than zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane"))]
    pub upkeep_interval: Duration,
    /// After how long a lease is reported as leaked, with its call site. Default 30 s, more than zero; none = off.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane::optional"))]
    pub leak_after: Option<Duration>,
    /// After how long without a return, while somebody waits, [`health`](crate::Pool::health) says stuck. Default 5 s, more than
    /// zero.
    #[cfg_attr(feature = "serde", serde(with = "crate::humane"))]
    pub stuck_after: Duration,
    /// Which idle resource is lent next. Default [`IdleOrder::Hot`].
    pub idle_order: IdleOrder,
    /// How many may wait for a resource to come back; more are rejected at once. Who waits for an open or a check does not count.
    /// Default none = no limit. Zero = fail at once when all are out.
    pub max_waiters: Option<usize>,
    /// What to do about a task that holds a lease and asks for another. A lease counts for the task that acquired it, also after it
    /// was moved into another. Default [`Nested::Report`].
    pub nested: Nested,
    /// What a failing [`warm`](crate::Pool::warm) means. Default [`WarmUp::Required`].
    pub warm_up: WarmUp,
    /// How many resources may be lent at once while the breaker recovers; what was out before does not count. Default 1, at least 1.
    pub probes: usize,
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
            stuck_after: Duration::from_secs(5),
            idle_order: IdleOrder::Hot,
            max_waiters: None,
            nested: Nested::Report,
            warm_up: WarmUp::Required,
            probes: 1,
        }
    }
}

/// What a failed open means for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum OnOpenError {
    /// Its error goes to the oldest waiter at once.
    Fail,
    /// It is tried again, with jittered exponential back-off, for as long as somebody waits.
    Retry,
}

/// Which idle resource is lent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum IdleOrder {
    /// What was used last, on this thread if possible, so that few are kept hot and the rest can be evicted.
    Hot,
    /// What was unused longest, exactly.
    Oldest,
}

/// What to do about a task that holds a lease and asks for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum Nested {
    /// Nothing.
    Allow,
    /// Raise an event as soon as every lease is held by a task that waits for this pool, and say so in the timeout error.
    Report,
    /// Fail the second acquire of a task at once.
    Deny,
}

/// What a failing warm-up means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum WarmUp {
    /// [`warm`](crate::Pool::warm) returns the error.
    Required,
    /// It is tolerated: the pool starts short and is refilled in the background.
    BestEffort,
}

/// A value that a pool cannot work with: which field, which value, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    value: String,
    allowed: String,
}

impl ConfigError {
    /// The name of the field.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The value that was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What is allowed there.
    pub fn allowed(&self) -> &str {
        &self.allowed
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is {}, allowed: {}",
            self.field, self.value, self.allowed
        )
    }
}

impl std::error::Error for ConfigError {}

/// A configuration that was checked.
#[derive(Debug)]
pub(crate) struct Limits(Config);

impl Deref for Limits {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.0
    }
}

/// Longer than anybody means, and short enough that adding it to the clock never overflows.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

impl Limits {
    /// The one place that may refuse.
    pub(crate) fn check(config: Config) -> Result<Self, ConfigError> {
        let c = &config;
        let up_to_max = format!("0 to `max_size` ({})", c.max_size);
        require(
            c.name.as_deref() != Some(""),
            "name",
            &"\"\"",
            "at least one character, or none",
        )?;
        require(c.max_size >= 1, "max_size", &c.max_size, "at least 1")?;
        require(
            c.min_size <= c.max_size,
            "min_size",
            &c.min_size,
            &up_to_max,
        )?;
        require(
            c.min_idle <= c.max_size,
            "min_idle",
            &c.min_idle,
            &up_to_max,
        )?;
        require(
            c.max_opening >= 1,
            "max_opening",
            &c.max_opening,
            "at least 1",
        )?;
        require(c.probes >= 1, "probes", &c.probes, "at least 1")?;
        require(c.max_uses != Some(0), "max_uses", &0, "at least 1, or none")?;
        require(
            (0.0..=1.0).contains(&c.lifetime_jitter),
            "lifetime_jitter",
            &c.lifetime_jitter,
            "0 to 1",
        )?;

        let optional = [
            ("acquire_timeout", c.acquire_timeout),
            ("open_timeout", c.open_timeout),
            ("idle_timeout", c.idle_timeout),
            ("max_lifetime", c.max_lifetime),
            ("heartbeat_interval", c.heartbeat_interval),
            ("leak_after", c.leak_after),
        ];
        for (field, value) in optional {
            let Some(value) = value else { continue };
            let fits = !value.is_zero() && value <= LONGEST;
            require(
                fits,
                field,
                &Shown(value),
                "more than zero and at most ten years, or none",
            )?;
        }
        if let Some(value) = c.check_after_idle {
            let allowed = "zero (every acquire) to ten years, or none (never)";
            require(value <= LONGEST, "check_after_idle", &Shown(value), allowed)?;
        }
        let required = [
            ("check_timeout", c.check_timeout),
            ("clean_timeout", c.clean_timeout),
            ("close_timeout", c.close_timeout),
            ("upkeep_interval", c.upkeep_interval),
            ("stuck_after", c.stuck_after),
        ];
        for (field, value) in required {
            let fits = !value.is_zero() && value <= LONGEST;
            require(
                fits,
                field,
                &Shown(value),
                "more than zero and at most ten years",
            )?;
        }
        Ok(Self(config))
    }

    /// `max_size` can change later; what it may change to is checked here too.
    pub(crate) fn check_resize(&self, max_size: usize) -> Result<(), ConfigError> {
        let least = self.min_size.max(self.min_idle).max(1);
        let allowed = format!("at least {least} (`min_size` and `min_idle` must fit)");
        require(max_size >= least, "max_size", &max_size, &allowed)
    }
}

/// A duration as a value in a sentence.
struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

fn require(
    holds: bool,
    field: &'static str,
    value: &dyn fmt::Display,
    allowed: &str,
) -> Result<(), ConfigError> {
    if holds {
        return Ok(());
    }
    Err(ConfigError {
        field,
        value: value.to_string(),
        allowed: allowed.to_owned(),
    })
}
