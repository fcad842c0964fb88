#![cfg_attr(
    // The examples of the README need this feature.
    any(not(doctest), feature = "sqlx"),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod label;
mod problem;
mod scope;
#[cfg(feature = "sqlx")]
mod transactional;

pub use problem::Problem;
pub use scope::{RequestScope, ScopeBody, ScopeService};
#[cfg(feature = "sqlx")]
pub use transactional::{Transactional, TransactionalService};
