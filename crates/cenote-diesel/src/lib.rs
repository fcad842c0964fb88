#![cfg_attr(
    // The example of the README needs this feature.
    any(not(doctest), feature = "postgres"),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocking;
mod connection;
mod end;
mod error;
mod manager;
mod mark;
mod reset;
mod state;
mod template;
mod watch;

pub use diesel;
pub use diesel_async;

pub use blocking::Blocking;
pub use connection::BlockingConnection;
pub use error::Error;
pub use manager::Diesel;
pub use reset::Reset;
