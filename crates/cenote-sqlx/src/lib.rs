#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    expect(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "what all databases share"
    )
)]

mod ambient;
mod builder;
mod command;
mod db;
mod dialect;
mod error;
mod executor;
mod lease;
mod manager;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod retry;
mod scan;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod template;
mod transaction;
#[cfg(feature = "macros")]
mod transactional;
mod url;
mod writer;

pub use builder::{BuildError, Builder, Credentials};
pub use db::Db;
pub use dialect::{Dialect, Options, Step};
pub use error::{Class, pool_error};
pub use lease::Lease;
pub use manager::Sql;
pub use retry::Retry;
pub use scan::Dirt;
pub use session::Session;
pub use template::Reset;
pub use transaction::{Isolation, Transaction, TransactionOptions};
#[cfg(feature = "macros")]
pub use transactional::{Outcome, Reply, transactional};

/// What the expansion of [`transactional`] names. No part of the interface.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __transactional {
    pub use crate::transactional::{AnyEnd, End, How, Tries, handle, rest, run};
}
