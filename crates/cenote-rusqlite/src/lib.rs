#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod brake;
mod build_error;
mod builder;
mod busy;
mod class;
mod config;
mod db;
mod desk;
mod error;
mod file;
#[cfg(feature = "serde")]
mod human;
mod manager;
mod place;
mod session;
mod template;
mod watch;

pub use build_error::BuildError;
pub use builder::Builder;
pub use class::{Class, classify};
pub use config::Config;
pub use db::Db;
pub use error::{Error, SessionError};
pub use manager::Sqlite;
pub use rusqlite;
pub use session::Session;

/// A pool of sessions.
pub type Pool = cenote::Pool<Sqlite>;

/// A session that is lent. It dereferences to [`Session`].
pub type Lease = cenote::Lease<Sqlite>;
