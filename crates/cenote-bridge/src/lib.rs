#![cfg_attr(
    // The examples of the README need these features.
    any(
        not(doctest),
        all(feature = "bb8", feature = "deadpool", feature = "r2d2"),
    ),
    doc = include_str!("../README.md")
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "bb8")]
mod bb8;
#[cfg(feature = "deadpool")]
mod deadpool;
#[cfg(feature = "deadpool")]
mod deadpool_object;
#[cfg(feature = "r2d2")]
mod r2d2;

#[cfg(feature = "bb8")]
pub use crate::bb8::Bb8;
#[cfg(feature = "deadpool")]
pub use crate::deadpool::{Deadpool, DeadpoolError};
#[cfg(feature = "deadpool")]
pub use crate::deadpool_object::DeadpoolObject;
#[cfg(feature = "r2d2")]
pub use crate::r2d2::{R2d2, R2d2Connection};
