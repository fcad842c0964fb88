#![cfg_attr(
    // The examples of the README need these features.
    any(
        not(doctest),
        all(
            feature = "axum",
            feature = "metrics",
            feature = "otel",
            feature = "sites",
            feature = "trace",
        ),
    ),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "prometheus")]
mod buckets;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "otel")]
mod otel;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(feature = "axum")]
mod routes;
#[cfg(feature = "otel")]
mod shelf;
#[cfg(feature = "sites")]
mod sites;
#[cfg(feature = "trace")]
pub mod trace;
#[cfg(any(feature = "metrics", feature = "otel", feature = "prometheus"))]
mod watch;

#[cfg(feature = "metrics")]
pub use facade::Facade;
#[cfg(feature = "otel")]
pub use otel::Otel;
#[cfg(feature = "prometheus")]
pub use prometheus::Prometheus;
#[cfg(feature = "sites")]
pub use sites::{SiteTotals, Sites};
#[cfg(any(feature = "metrics", feature = "otel", feature = "prometheus"))]
pub use watch::Pools;
