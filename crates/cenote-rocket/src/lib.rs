#![cfg_attr(
    // The examples of the README need these features.
    any(not(doctest), feature = "sqlx"),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlx"))]
mod drivers;
mod pool;
mod settings;
#[cfg(feature = "sqlx")]
mod transactional;

pub use pool::{BuildError, Pool, RocketManager, RocketPool};
pub use settings::Settings;
#[cfg(feature = "sqlx")]
pub use transactional::transactional;
