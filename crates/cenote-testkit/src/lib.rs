#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
pub mod clock;
pub mod conformance;
mod proxy;
mod recorder;
mod rig;
// Models have no local pools.
#[cfg(all(feature = "sound", not(cenote_model)))]
pub mod sim;
pub mod soak;
mod status;

pub use backend::{Backend, Call, Fault, Gate, GatedManager, Thing};
pub use conformance::cut;
pub use proxy::{Counts, Proxy, Then, Way};
pub use recorder::Recorder;
pub use rig::{GatedPool, Rig, Waiting};
pub use status::counters;
