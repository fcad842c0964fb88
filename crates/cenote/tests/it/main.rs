//! The promises, one file each.

mod fairness;
