//! The header `Retry-After`: how it is chosen, rounded and spread.

use std::time::Duration;

use http::HeaderValue;

/// `Retry-After` where neither the error nor the layer knows better.
pub(crate) const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

/// The least spread, in seconds: the clients of a pool that is dry for a moment do not all return
/// at the same second.
const LEAST_SPREAD: u64 = 2;

/// When a client may try again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    /// The layer decides.
    #[default]
    Unset,
    /// The program said so.
    Exactly(Duration),
    /// An estimate: it is spread.
    About(Duration),
    /// A retry cannot help, so there is no header.
    Never,
}

impl RetryAfter {
    pub(crate) fn duration(self) -> Option<Duration> {
        match self {
            Self::Exactly(after) | Self::About(after) => Some(after),
            Self::Unset | Self::Never => None,
        }
    }

    /// Returns the value of the header. `default` is for a problem that says nothing.
    pub(crate) fn header(self, default: Duration) -> Option<HeaderValue> {
        let seconds = match self {
            Self::Exactly(after) => seconds(after),
            Self::About(after) => spread(seconds(after)),
            Self::Unset => spread(seconds(default)),
            Self::Never => return None,
        };
        Some(HeaderValue::from(seconds))
    }
}

/// Rounds up to whole seconds, at least one.
fn seconds(after: Duration) -> u64 {
    let up = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    up.max(1)
}

/// Adds up to half of it, so that clients which were refused together do not return together.
fn spread(seconds: u64) -> u64 {
    let most = (seconds / 2).max(LEAST_SPREAD);
    seconds.saturating_add(fastrand::u64(0..=most))
}

#[cfg(test)]
mod tests;
