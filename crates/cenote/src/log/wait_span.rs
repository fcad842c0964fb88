//! The span of an acquire that has to wait: a child of the span in which it was first polled.

use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use tracing::Span;

/// The subscriber is user code, so a panic in it is dropped: the end of a span must not lose a
/// resource.
#[derive(Debug)]
pub(crate) struct WaitSpan(Span);

impl Default for WaitSpan {
    fn default() -> Self {
        Self(Span::none())
    }
}

impl WaitSpan {
    pub(crate) fn begin(pool: &str, site: &'static Location<'static>) -> Self {
        let make = || tracing::info_span!(target: "cenote", "acquire", pool, %site);
        catch_unwind(AssertUnwindSafe(make)).map_or_else(|_| Self::default(), Self)
    }

    /// Writes lines in this span.
    pub(crate) fn enter(&self, write: impl FnOnce()) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.0.in_scope(write)));
    }
}

impl Drop for WaitSpan {
    fn drop(&mut self) {
        let span = mem::replace(&mut self.0, Span::none());
        let _ = catch_unwind(AssertUnwindSafe(|| drop(span)));
    }
}
