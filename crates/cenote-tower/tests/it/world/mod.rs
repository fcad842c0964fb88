//! What the suite needs to know of each database.

pub(crate) mod postgres;
pub(crate) mod sqlite;
