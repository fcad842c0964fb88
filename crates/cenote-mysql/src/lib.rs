#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod ambient;
mod build_error;
mod builder;
mod config;
mod credentials;
mod error;
mod killer;
mod manager;
mod pool;
mod queries;
mod session;
mod template;
mod transaction;
mod url;

pub use mysql_async;

pub use build_error::BuildError;
pub use builder::Builder;
pub use config::Config;
pub use credentials::Credentials;
pub use error::{Class, Error, classify};
pub use manager::Mysql;
pub use pool::{Lease, Pool};
pub use session::Session;
pub use template::Reset;
pub use transaction::{Transaction, TransactionOptions};
