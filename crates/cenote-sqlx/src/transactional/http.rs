//! HTTP responses as the outcome of a transaction.

use std::sync::Arc;
use std::time::Duration;

use cenote::AcquireError;
use cenote::scope::BindError;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use sqlx::Error;

use super::{Outcome, Reply};
use crate::error::pool_error;

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

/// The status decides. A failed transaction is a 500, or a 503 with `Retry-After` if the pool had
/// no connection to lend (timeout, breaker tripped, too many waiters). The body is empty. The error
/// is among the extensions as an `Arc<sqlx::Error>`, where `ProblemLayer` of cenote-tower finds it.
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

/// The status decides. A failed transaction is a 500, or a 503 if the pool had no connection to
/// lend.
impl Outcome for StatusCode {
    fn commits(&self) -> bool {
        !self.is_error()
    }

    fn failed(error: Error) -> Self {
        status(&error)
    }
}

fn status(error: &Error) -> StatusCode {
    match worth_waiting(error) {
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
        None => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns after how many seconds the pool may have a connection again, if there was none.
fn worth_waiting(error: &Error) -> Option<u64> {
    // `busy` in cenote-tower has the same three variants, and a test there compares both. A failed
    // open is not among them: waiting does not help.
    let BindError::Acquire(error) = pool_error(error)? else {
        return None;
    };
    match error {
        AcquireError::Unavailable(unavailable) => Some(unavailable.retry_after.map_or(1, seconds)),
        AcquireError::TimedOut(_) | AcquireError::Rejected { .. } => Some(1),
        _ => None,
    }
}

/// Rounds up to whole seconds, at least one: an earlier retry would fail again.
fn seconds(after: Duration) -> u64 {
    let up = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    up.max(1)
}
