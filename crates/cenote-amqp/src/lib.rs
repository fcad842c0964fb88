#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod channel;
mod config;
mod error;
mod manager;
mod pool;

pub use lapin;

pub use builder::Builder;
pub use channel::Channel;
pub use config::Config;
pub use error::{AcquireError, BuildError, Error};
pub use manager::{Channels, Connections};
pub use pool::{Lease, Pool};
