//! The driver on real servers.
