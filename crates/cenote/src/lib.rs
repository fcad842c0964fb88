#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod advice;
mod annex;
pub mod breaker;
mod builder;
mod closures;
pub mod config;
mod control;
mod divide;
pub mod error;
mod error_class;
pub mod event;
mod evict;
mod held_slot;
pub mod hook;
#[cfg(feature = "serde")]
mod human;
mod lease;
mod ledger;
#[cfg(not(cenote_model))]
pub mod local;
mod local_manager;
mod log;
pub mod logs;
mod manager;
mod meter;
mod observers;
mod permit;
mod pool;
mod reasons;
pub mod registry;
mod rt;
#[cfg(not(cenote_model))]
pub mod scope;
pub mod second_level;
mod setters;
mod sever;
mod shared_breaker;
mod shared_upkeep;
mod shell;
pub mod status;
mod strategies;
pub mod threads;
mod time;
mod timed_out;
mod tray;
mod views;
mod wait_for;
mod warm_error;
mod with;

pub use builder::Builder;
pub use closures::{ClosureError, Closures};
pub use config::{Config, ConfigError};
pub use error::{AcquireError, OpenError, WarmError};
pub use event::Observer;
pub use held_slot::HeldSlot;
pub use lease::Lease;
#[cfg(cenote_model)]
pub use local_manager::LocalManager;
pub use manager::{LeaseEnd, Manager};
pub use permit::Permit;
pub use pool::{Pool, WeakPool};
#[cfg(cenote_model)]
pub use rt::{begin, shut_down};
#[cfg(not(cenote_model))]
pub use scope::scope;
pub use sever::Severer;
pub use shared_upkeep::SharedUpkeep;
pub use status::{CloseReason, Health, Holder, Leftover, Status};
