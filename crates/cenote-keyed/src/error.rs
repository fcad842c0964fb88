//! Errors: why an acquire failed, and the state of the budget at that moment.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use cenote::ConfigError;
use cenote::error::TimedOut;

use crate::keyed::ManagerError;

/// Why an acquire failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum AcquireError<E> {
    /// The budget was used up: the key could not open a resource in time, because all places are
    /// held. Shorten leases, or raise `total`.
    UsedUp(Box<UsedUp<E>>),
    /// The pool of the key refused. The budget is not the cause.
    Pool(cenote::AcquireError<ManagerError<E>>),
    /// The pools were closed. They will not open again.
    Closed,
    /// The settings that [`Builder::pool`](crate::Builder::pool) made for this key are wrong.
    Config(ConfigError),
}

impl<E> AcquireError<E> {
    /// Returns whether the same call can succeed later, with nothing changed by the caller.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UsedUp(_) => true,
            Self::Pool(error) => error.is_retryable(),
            Self::Closed | Self::Config(_) => false,
        }
    }
}

impl<E> fmt::Display for AcquireError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UsedUp(used_up) => used_up.fmt(f),
            Self::Pool(error) => error.fmt(f),
            Self::Closed => f.write_str("the pools are closed"),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + 'static> Error for AcquireError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Pool(error) => error.source(),
            Self::Config(error) => error.source(),
            Self::UsedUp(_) | Self::Closed => None,
        }
    }
}

/// The state of the budget when an acquire timed out for want of a place.
#[derive(Debug)]
#[non_exhaustive]
pub struct UsedUp<E> {
    /// The key that got no place.
    pub key: String,
    /// How many places there are.
    pub total: usize,
    /// How many places are held. Those of resources that are being opened or closed are counted.
    pub held: usize,
    /// How many opens wait for a place, of all keys.
    pub waiting: usize,
    /// How many keys hold places.
    pub keys: usize,
    /// The keys that hold most places, with the number of these, ten keys at most.
    pub holders: Vec<(String, usize)>,
    /// The state of the key's own pool.
    pub timed_out: TimedOut<ManagerError<E>>,
}

impl<E> UsedUp<E> {
    /// Returns how long the caller waited.
    pub fn waited(&self) -> Duration {
        self.timed_out.waited()
    }
}

/// How many keys the text names; `holders` has more.
const KEYS_SHOWN: usize = 3;

impl<E> fmt::Display for UsedUp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited = self.waited();
        let Self {
            key,
            total,
            held,
            waiting,
            keys,
            ..
        } = self;
        write!(
            f,
            "key {key}: no place within {waited:.1?}: {held} of {total} places are held by {keys} \
             keys, {waiting} opens wait"
        )?;
        for (nth, (key, places)) in self.holders.iter().take(KEYS_SHOWN).enumerate() {
            write!(
                f,
                "{} {key} holds {places}",
                if nth == 0 { ":" } else { "," }
            )?;
        }
        f.write_str("; shorten leases or raise `total`")
    }
}

/// Why pools could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// `total` is 0. It must be at least 1.
    Total,
    /// A setting of the pools is wrong.
    Config(ConfigError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Total => f.write_str("`total` is 0: it must be at least 1"),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl Error for BuildError {}
