#![doc = include_str!("../README.md")]

mod advice;
mod annex;
pub mod breaker;
mod builder;
mod closures;
pub mod config;
mod control;
pub mod error;
mod error_class;
pub mod event;
mod held_slot;
pub mod hook;
#[cfg(feature = "serde")]
mod human;
mod lease;
mod ledger;
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
mod setters;
mod sever;
mod shared_breaker;
mod shell;
pub mod status;
mod strategies;
pub mod threads;
mod time;
mod timed_out;
mod tray;
mod views;
mod wait_for;
mod with;

pub use builder::Builder;
pub use closures::{ClosureError, Closures};
pub use config::{Config, ConfigError};
pub use error::{AcquireError, OpenError, WarmError};
pub use event::Observer;
pub use held_slot::HeldSlot;
pub use lease::Lease;
pub use manager::{LeaseEnd, Manager};
pub use permit::Permit;
pub use pool::{Pool, WeakPool};
#[cfg(cenote_model)]
pub use rt::{begin, shut_down};
#[cfg(not(cenote_model))]
pub use scope::scope;
pub use sever::Severer;
pub use status::{CloseReason, Health, Holder, Leftover, Status};
