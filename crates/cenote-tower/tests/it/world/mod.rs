//! The databases that the suite runs on.

pub(crate) mod postgres;
pub(crate) mod sqlite;
