//! The promises, one file each.

mod fairness;
mod readme;
