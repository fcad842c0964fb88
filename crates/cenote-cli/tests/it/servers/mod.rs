//! The program against real servers.

#[cfg(feature = "full")]
mod admin;
#[cfg(feature = "full")]
mod demo;
#[cfg(feature = "full")]
mod doors;
mod fleet;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "postgres")]
mod replay;
#[cfg(feature = "full")]
mod tls;
#[cfg(feature = "redis")]
mod tune;
