//! The trait of a pool of database connections for S13, and the work of its tasks.

mod floors;
mod home;
mod peers;
mod round;
pub mod statements;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::harness::results::Figure;

pub use floors::FLOORS;
pub use home::Home;
pub use peers::{DEADPOOL, SQLX, sqlite_options};
pub use round::round;

/// The number of connections of every pool.
pub const SIZE: usize = 10;

/// The number of rows of the table.
pub const ROWS: i32 = 1_000;

/// A pool of database connections. Everything but the number of connections is its default. Panics
/// if something fails.
pub trait SqlPeer: Clone + Send + Sync + 'static {
    /// Opens a pool of [`SIZE`] on the database of that URL, with all connections open and all
    /// statements prepared.
    fn open(url: &str) -> impl Future<Output = Self> + Send;

    /// Runs `SELECT 1` on any connection.
    fn one(&self) -> impl Future<Output = ()> + Send;

    /// Reads that row.
    fn read(&self, id: i32) -> impl Future<Output = ()> + Send;

    /// Changes that row.
    fn update(&self, id: i32) -> impl Future<Output = ()> + Send;

    /// Closes all connections.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// A real server, over loopback.
    Postgres,
    /// A file.
    Sqlite,
}

/// The work that tasks repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// `SELECT 1`.
    One,
    /// Four of five statements read a row and one changes a row. Any row may be chosen.
    Mix,
}

/// The load of a round.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The work of each task.
    pub work: Work,
    /// How many tasks work at the same time.
    pub tasks: usize,
    /// How long the round lasts.
    pub lasts: Duration,
    /// Seeds the choice of rows.
    pub seed: u64,
}

/// A database that a contender supports, and its round there.
pub type Entry = (Database, fn(String, Load) -> Vec<Figure>);
