//! Real servers for tests: PostgreSQL, MariaDB, Redis and PgBouncer. Standard library only, since `cargo xtask` is built on it.
//!
//! `find` answers with a server to test *against*: the one that the environment names (`CENOTE_POSTGRES_URL`, `CENOTE_MYSQL_URL`,
//! `CENOTE_REDIS_URL`, `CENOTE_PGBOUNCER_URL`), else the one on this machine's standard port if it lets us in, else a private one.
//! `start` gives a private one to restart, kill or starve: on a free loopback port, with its data in a temporary folder, as the server's own
//! user if we are root. A program that is missing is installed if we are root on Debian; otherwise the error says how to get it.
//!
//! ```
//! use std::io::{BufRead, BufReader, Write};
//! use std::net::TcpStream;
//!
//! # fn main() -> std::io::Result<()> {
//! let mut redis = cenote_servers::redis::start()?;
//! let ping = |address| {
//!     let mut stream = TcpStream::connect(address)?;
//!     stream.write_all(b"PING\r\n")?;
//!     BufReader::new(stream).lines().next().expect("it answers")
//! };
//! assert_eq!(ping(redis.addr())?, "+PONG");
//!
//! redis.kill()?;
//! assert!(ping(redis.addr()).is_err());
//!
//! redis.restart()?; // on the same port, with the same data
//! assert_eq!(ping(redis.addr())?, "+PONG");
//! # Ok(()) } // stopped here, and its folder is gone
//! ```
//!
//! What was started is stopped when its [`Server`] is dropped, and also when this process is killed or interrupted: a small watchdog process
//! waits for that.

mod home;
pub mod mariadb;
pub mod pgbouncer;
pub mod postgres;
mod process;
mod program;
pub mod redis;
mod search;
mod server;
mod template;
mod url;
mod watchdog;
mod wire;

pub use search::{Found, find_all};
pub use server::Server;

/// A setting by name and value, as in the server's own configuration.
pub type Setting<'a> = (&'a str, &'a str);

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this waits for other processes"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
