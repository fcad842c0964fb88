#![cfg_attr(
    // The examples of the README need these features.
    any(not(doctest), all(feature = "macros", feature = "sqlite")),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    expect(
        unused_imports,
        unused_macros,
        reason = "shared by the databases, of which none is chosen"
    )
)]

mod ambient;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod any_db;
mod build_error;
mod builder;
mod command;
mod context;
#[cfg(feature = "postgres")]
mod copy;
mod credentials;
mod db;
mod detach;
mod dialect;
mod dirt;
mod error;
mod executor;
mod group;
mod hooks;
mod known;
mod label;
mod lazy;
mod lease;
mod lexer;
#[cfg(feature = "postgres")]
mod listener;
mod manager;
mod meaning;
#[cfg(feature = "mysql")]
mod mysql;
mod name;
mod nesting;
#[cfg(feature = "postgres")]
mod postgres;
mod reading;
mod refusal;
mod retry;
mod retry_reads;
mod sandbox;
#[cfg(feature = "sea-orm")]
mod sea_orm;
mod session;
mod settings;
#[cfg(feature = "sqlite")]
mod sqlite;
mod sqlx_pool;
mod statement;
mod template;
mod transaction;
#[cfg(feature = "macros")]
mod transactional;
mod url;
mod watchdog;
mod within;
mod writer;

#[cfg(feature = "sea-orm")]
pub use crate::sea_orm::{OrmDialect, OrmError, OrmTransaction};
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub use any_db::AnyDb;
pub use build_error::BuildError;
pub use builder::Builder;
pub use context::Context;
#[cfg(feature = "postgres")]
pub use copy::CopyIn;
pub use credentials::Credentials;
pub use db::Db;
pub use dialect::{Dialect, Options, Step};
pub use dirt::Dirt;
pub use error::{Class, classify, is_denied, is_timeout, pool_error};
pub use lazy::LazyTransaction;
pub use lease::Lease;
#[cfg(feature = "postgres")]
pub use listener::Listener;
pub use manager::Sql;
pub use retry::Retry;
#[cfg(feature = "macros")]
pub use sandbox::runner::test;
pub use session::Session;
pub use sqlx_pool::SqlxPool;
pub use template::Reset;
pub use transaction::{Isolation, Transaction, TransactionOptions};
#[cfg(feature = "macros")]
pub use transactional::{Outcome, Reply, transactional};

/// Items that the expansion of [`test`] uses. Not part of the public API.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __test {
    pub use crate::sandbox::runner::{Plan, run};
}

/// Items that the expansion of [`transactional`] uses. Not part of the public API.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __transactional {
    pub use crate::transactional::{AnyEnd, End, How, Tries, guess, handle, rest, run};
}
