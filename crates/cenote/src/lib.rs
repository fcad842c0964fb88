#![doc = include_str!("../README.md")]

mod acquire;
mod alarm;
mod backoff;
mod breaker;
mod builder;
mod clock;
mod closures;
mod config;
mod driver;
mod error;
mod guarded;
mod hooks;
#[cfg(feature = "serde")]
mod humane;
mod kept;
mod lease;
mod ledger;
mod manager;
mod moment;
mod observer;
mod pool;
mod pooled;
#[cfg(not(cenote_model))]
mod rt;
#[cfg(cenote_model)]
#[path = "rt_model.rs"]
mod rt;
#[cfg(not(cenote_model))]
mod scope;
mod shared;
mod status;
mod strategy;
mod sync;
mod tray;
mod upkeep;
mod waiting;
mod watcher;
mod whole;

pub use breaker::{
    BreakerState, ConsecutiveFailures, Failure, FailureRate, Recovery, Strategy, Verdict,
};
pub use builder::Builder;
pub use closures::{ClosureError, Closures};
pub use config::{Config, ConfigError, IdleOrder, Nested, OnOpenError, WarmUp};
pub use error::{AcquireError, OpenError, Phase, TimedOut, WarmError};
pub use hooks::AsyncPredicate;
pub use lease::Lease;
pub use manager::Manager;
pub use observer::{
    Acquired, BreakerChanged, Callback, CallbackFailed, Closed, Detached, Discarded, Leaked,
    NestedAcquire, Observer, OpenFailed, Opened, Opening, PoolClosed, PoolOpened, Released,
    Resized, ReturnedLate, TimeoutRaised,
};
pub use pool::{Pool, WeakPool};
#[cfg(cenote_model)]
pub use rt::{begin, shut_down};
#[cfg(not(cenote_model))]
pub use scope::{BindError, Bound, LazyScope, Scope, scope};
pub use status::{Closes, Health, Holder, HolderGroup, Leftover, Reason, Status, Task};
