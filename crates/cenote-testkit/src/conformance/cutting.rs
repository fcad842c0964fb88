//! Futures that are dropped midway.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Drops `future` after `polls` polls. Returns `None` unless it ended before.
///
/// # Cancel safety
/// Dropping this future drops `future`.
pub async fn cut<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut left = polls;
    let mut future = pin!(future);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
