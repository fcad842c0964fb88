#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod budget;
mod builder;
mod control;
#[doc(hidden)]
pub mod doc;
mod error;
mod key;
mod keyed;
mod keys;
mod lock;
#[cfg(all(test, cenote_model))]
mod model;
mod pools;
mod room;
mod wait;

pub use builder::Builder;
pub use control::BudgetStatus;
pub use error::{AcquireError, BuildError, UsedUp};
pub use keyed::{Held, Keyed, ManagerError};
pub use pools::{Acquire, Pools};
