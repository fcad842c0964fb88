//! The results for people and for machines.

pub mod chart;
pub mod document;
mod growth;
pub mod machine;
pub mod summary;
pub mod table;
#[cfg(test)]
mod tests;
