//! The scenarios, the peers and the report. Nothing here knows cenote.

pub mod backend;
pub mod bounded;
pub mod child;
pub mod clock;
pub mod contender;
pub mod effort;
pub mod peer;
#[cfg(feature = "peers")]
pub mod peers;
pub mod processes;
pub mod progress;
pub mod report;
pub mod results;
pub mod rounds;
pub mod runtime;
pub mod scenarios;
#[cfg(feature = "peers")]
pub mod sql;
pub mod stats;
