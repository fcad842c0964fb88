//! User code under guard: it may fail, hang or panic, and all three come back as a value.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::time;

/// How a callback ended when it did not end well by itself.
#[derive(Clone, Debug)]
pub(crate) enum Mishap {
    Overdue(Duration),
    Panicked(Arc<str>),
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overdue(limit) => write!(f, "took longer than {limit:.1?}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
        }
    }
}

/// Runs `callback` for at most `limit`.
pub(crate) async fn guarded<T>(
    limit: Option<Duration>,
    callback: impl Future<Output = T>,
) -> Result<T, Mishap> {
    let mut callback = pin!(Some(callback));
    let caught = poll_fn(|context| {
        let Some(running) = callback.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        match catch_unwind(AssertUnwindSafe(|| running.poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(Mishap::Panicked(message(&*panic)))),
        }
    });
    let ended = within(limit, caught).await;
    // The destructor of the callback is user code, too.
    let _ = guarded_now(|| callback.set(None));
    ended.unwrap_or_else(|| Err(Mishap::Overdue(limit.unwrap_or_default())))
}

/// `future`, or `None` when `limit` is over first.
async fn within<T>(limit: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    let deadline = limit.and_then(|limit| time::now().checked_add(limit));
    let mut future = pin!(future);
    let mut timer = pin!(time::sleep_until(deadline));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Runs a callback that does not wait.
pub(crate) fn guarded_now<T>(callback: impl FnOnce() -> T) -> Result<T, Mishap> {
    catch_unwind(AssertUnwindSafe(callback)).map_err(|panic| Mishap::Panicked(message(&*panic)))
}

#[cold]
fn message(panic: &(dyn Any + Send)) -> Arc<str> {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").into()
}
