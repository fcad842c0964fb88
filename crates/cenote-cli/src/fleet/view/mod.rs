//! A fleet on any engine: read, kept over time, and shown.

mod data;
mod reader;
#[cfg(feature = "top")]
mod screen;
mod watch;

pub(super) use reader::{LIMIT, Reader};
pub(super) use watch::run;
