//! HTTP responses as the outcome of a transaction.

use std::sync::Arc;
use std::time::Duration;

use cenote::scope::BindError;
use cenote::{AcquireError, OpenError};
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use sqlx::Error;

use super::{Outcome, Reply};
use crate::error::{Class, classify, is_denied, pool_error};

impl Reply for StatusCode {
    fn is_error(&self) -> bool {
        self.is_client_error() || self.is_server_error()
    }
}

impl<B> Reply for Response<B> {
    fn is_error(&self) -> bool {
        self.status().is_error()
    }
}

macro_rules! tuples {
    ($(($($part:ident),+)),+) => {$(
        impl<$($part),+> Reply for (StatusCode, $($part),+) {
            fn is_error(&self) -> bool {
                self.0.is_error()
            }
        }
    )+};
}

tuples!((A), (A, B), (A, B, C), (A, B, C, D), (A, B, C, D, E));

/// The status decides. A failed transaction is a 503 with `Retry-After` if the pool had no
/// connection to lend, or after a conflict with another transaction, and a 500 otherwise.
/// `Retry-After` is left out if a retry cannot help
/// (wrong password, unknown database). The body is empty. The error is among the extensions as an
/// `Arc<sqlx::Error>`, where `ProblemLayer` of cenote-tower finds it.
impl<B: Default> Outcome for Response<B> {
    fn commits(&self) -> bool {
        !self.is_error()
    }

    fn failed(error: Error) -> Self {
        let mut response = Self::new(B::default());
        if let Some(seconds) = worth_waiting(&error) {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        *response.status_mut() = status(&error);
        response.extensions_mut().insert(Arc::new(error));
        response
    }
}

/// The status decides. A failed transaction has the status that a response has.
impl Outcome for StatusCode {
    fn commits(&self) -> bool {
        !self.is_error()
    }

    fn failed(error: Error) -> Self {
        status(&error)
    }
}

fn status(error: &Error) -> StatusCode {
    let may_pass = nothing_to_lend(error).is_some() || classify(error) == Class::Conflict;
    match may_pass {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns after how many seconds a retry may help: the pool may have a connection again, or the
/// conflict may be over. Up to half of it is added at random, at least up to two seconds.
fn worth_waiting(error: &Error) -> Option<u64> {
    let after = match nothing_to_lend(error) {
        Some(error) => after(error)?,
        None if classify(error) == Class::Conflict => 1,
        None => return None,
    };
    Some(after.saturating_add(fastrand::u64(0..=(after / 2).max(2))))
}

/// Returns the error of a pool that has nothing to lend. `busy` in cenote-tower has the same
/// variants, and a test there compares both.
fn nothing_to_lend(error: &Error) -> Option<&AcquireError<Error>> {
    let BindError::Acquire(error) = pool_error(error)? else {
        return None;
    };
    let is_it = matches!(
        error,
        AcquireError::Unavailable(_)
            | AcquireError::TimedOut(_)
            | AcquireError::Rejected { .. }
            | AcquireError::Open { .. }
    );
    is_it.then_some(error)
}

fn after(error: &AcquireError<Error>) -> Option<u64> {
    let (after, open) = match error {
        AcquireError::Unavailable(seen) => (seen.retry_after, seen.cause.as_ref()),
        AcquireError::TimedOut(seen) => (None, seen.last_open_error()),
        AcquireError::Open { error, .. } => (None, Some(error)),
        _ => (None, None),
    };
    match open {
        Some(OpenError::Failed(cause)) if is_denied(cause) => None,
        _ => Some(after.map_or(1, seconds)),
    }
}

/// Rounds up to whole seconds, at least one: an earlier retry would fail again.
fn seconds(after: Duration) -> u64 {
    let up = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    up.max(1)
}
