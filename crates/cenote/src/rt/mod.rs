//! The runtime: tasks, timers and threads. `on_tokio` is the only file of the core that names
//! tokio; `on_shuttle` stands in for it in models. `sync` has the locks and atomics of both.

#[cfg(cenote_model)]
mod on_shuttle;
#[cfg(not(cenote_model))]
mod on_tokio;
pub(crate) mod sync;

#[cfg(cenote_model)]
pub(crate) use on_shuttle::*;
#[cfg(cenote_model)]
pub use on_shuttle::{begin, shut_down};
#[cfg(not(cenote_model))]
pub(crate) use on_tokio::*;
