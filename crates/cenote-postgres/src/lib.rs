#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod ambient;
mod builder;
mod cache;
mod cancel;
mod config;
mod connect;
mod credentials;
mod error;
mod manager;
mod meaning;
mod notifications;
mod pool;
mod session;
mod state;
mod statement;
mod template;
#[cfg(feature = "rustls")]
mod tls;
mod tracked;
mod transaction;

#[cfg(feature = "rustls")]
pub use rustls;
pub use tokio_postgres;

pub use builder::Builder;
pub use config::Config;
pub use credentials::Credentials;
pub use error::{BuildError, Class, Error, classify};
pub use manager::Postgres;
pub use notifications::Notifications;
pub use pool::{Lease, Pool};
pub use session::Session;
pub use statement::{Statement, ToStatement};
pub use template::Reset;
pub use tracked::{CopyInSink, CopyOutStream, RowStream, Tracked};
pub use transaction::{Transaction, TransactionOptions};
