#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod build_error;
mod builder;
mod config;
mod credentials;
mod dial;
mod error;
#[cfg(feature = "serde")]
mod human;
mod lanes;
mod lease;
mod login;
mod manager;
mod messages;
mod pool;
mod reading;
mod session;
mod table;
#[cfg(feature = "rustls")]
mod tls;
mod url;
mod wire;

pub use build_error::BuildError;
pub use builder::Builder;
pub use config::Config;
pub use credentials::Credentials;
pub use error::{Class, classify, is_timeout, pool_error};
pub use lease::Lease;
pub use manager::Redis;
pub use pool::Pool;
pub use redis;
pub use session::Session;
#[cfg(feature = "rustls")]
pub use tokio_rustls::rustls;
