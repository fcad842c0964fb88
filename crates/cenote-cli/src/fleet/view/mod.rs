//! A fleet on any engine: read, kept over time, and shown.

mod data;
mod reader;
#[cfg(feature = "top")]
mod screen;
mod watch;

#[cfg(feature = "nats")]
pub(super) use reader::LIMIT;
pub(super) use reader::Reader;
pub(super) use watch::run;
