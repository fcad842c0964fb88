//! Real servers for tests: PostgreSQL, MariaDB, Redis, NATS, RabbitMQ, PgBouncer, Prometheus, and a
//! browser. It uses the standard library only, so that `cargo xtask` has them in seconds.
//!
//! `find` returns a server to test *against*. It takes the one that the environment names
//! (`CENOTE_POSTGRES_URL`, `CENOTE_MYSQL_URL`, `CENOTE_REDIS_URL`, `CENOTE_NATS_URL`,
//! `CENOTE_RABBITMQ_URL`, `CENOTE_PGBOUNCER_URL`), else the one on the standard port of this
//! machine if it needs no password, else a private one. RabbitMQ always needs one, and has `guest`.
//! `start` returns a private server that a test may restart, kill or starve. It has a free loopback
//! port and a temporary folder for its data, and as root it runs as the server's own user. As root
//! on Debian a missing program is installed. Elsewhere the error says how to get it.
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
//! A private server is stopped when its [`Server`] is dropped. If this process is killed or
//! interrupted, a small watchdog process stops it.

mod certificate;
pub mod chromium;
pub mod faketime;
mod home;
pub mod mariadb;
pub mod nats;
pub mod pgbouncer;
pub mod postgres;
mod process;
mod program;
pub mod prometheus;
pub mod rabbitmq;
pub mod redis;
mod search;
mod server;
mod template;
mod url;
mod watchdog;
mod wire;

pub use certificate::Certificate;
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
