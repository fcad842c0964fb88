#![cfg_attr(
    // The examples of the README need these features.
    any(not(doctest), all(feature = "axum", feature = "sqlx")),
    doc = include_str!("../README.md")
)]

mod health;
mod problem;
mod problem_layer;
mod scope;
mod shed;
mod text;
#[cfg(feature = "sqlx")]
mod transactional;
#[cfg(all(feature = "axum", feature = "sqlx"))]
mod tx;
mod verdict;

#[cfg(feature = "axum")]
pub use health::health_routes;
pub use health::{Liveness, Readiness};
pub use problem::Problem;
pub use problem_layer::{ProblemFuture, ProblemLayer, ProblemService, ServiceError};
pub use scope::{ScopeBody, ScopeFuture, ScopeLayer, ScopeService};
pub use shed::{ShedFuture, ShedLayer, ShedService};
pub use text::{AnswerBody, Text};
#[cfg(feature = "sqlx")]
pub use transactional::{TransactionalLayer, TransactionalService};
#[cfg(all(feature = "axum", feature = "sqlx"))]
pub use tx::Tx;
pub use verdict::{rolls_back, status_rolls_back};
