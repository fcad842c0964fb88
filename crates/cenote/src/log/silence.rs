//! The log of a build without the feature `tracing`: all of this compiles to nothing.

use std::panic::Location;
use std::time::Duration;

use crate::advice::Facts;
use crate::event::Observer;
use crate::status::Leftover;
use crate::timed_out::TimedOut;

#[derive(Debug, Default)]
pub(crate) struct Log {}

impl Log {
    pub(crate) const fn is_on() -> bool {
        false
    }

    pub(crate) fn acquire_timed_out<E>(
        &self,
        _: &'static Location<'static>,
        _: &TimedOut<E>,
        _: Option<Duration>,
    ) {
    }

    pub(crate) fn slow(
        &self,
        _: &str,
        _: &'static Location<'static>,
        _: Duration,
        _: impl FnOnce() -> Facts,
    ) {
    }

    pub(crate) fn ended(&self, _: &str, _: &Leftover, _: Duration) {}

    pub(crate) fn flush(&self, _: &str) {}
}

impl Observer for Log {}

#[derive(Debug, Default)]
pub(crate) struct WaitSpan {}

impl WaitSpan {
    pub(crate) fn begin(_: &str, _: &'static Location<'static>) -> Self {
        Self {}
    }

    pub(crate) fn enter(&self, tell: impl FnOnce()) {
        tell();
    }
}
