#![cfg_attr(
    // The examples of the README need these features.
    any(not(doctest), all(feature = "axum", feature = "sqlx")),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod asked;
mod convert;
mod estimate;
mod health;
#[cfg(feature = "axum")]
mod leased;
#[cfg(feature = "tracing")]
mod log;
mod problem;
mod problem_layer;
mod retry_after;
mod scope;
mod service_error;
mod shed;
#[cfg(feature = "sqlx")]
mod stack;
mod text;
#[cfg(feature = "sqlx")]
mod transactional;
#[cfg(all(feature = "axum", feature = "sqlx"))]
mod tx;
mod verdict;

#[cfg(feature = "axum")]
pub use health::health_routes;
pub use health::{Liveness, Readiness};
#[cfg(feature = "axum")]
pub use leased::Leased;
pub use problem::Problem;
pub use problem_layer::{ProblemFuture, ProblemLayer, ProblemService};
pub use scope::{ScopeBody, ScopeFuture, ScopeLayer, ScopeService};
pub use service_error::ServiceError;
pub use shed::{ShedFuture, ShedLayer, ShedService};
#[cfg(feature = "sqlx")]
pub use stack::{Stack, StackService};
pub use text::{AnswerBody, Text};
#[cfg(feature = "sqlx")]
pub use transactional::{TransactionalLayer, TransactionalService};
#[cfg(all(feature = "axum", feature = "sqlx"))]
pub use tx::Tx;
pub use verdict::{rolls_back, status_rolls_back};
