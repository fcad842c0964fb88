//! What a pool of database connections must be able to do to take part in S13, and what its tasks do with it.

mod home;
mod peers;
mod round;
pub mod statements;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::results::Figure;

pub use home::Home;
pub use peers::{DEADPOOL, SQLX, sqlite_options};
pub use round::round;

/// As many connections has every pool.
pub const SIZE: usize = 10;

/// As many rows has the table.
pub const ROWS: i32 = 1_000;

/// A pool of database connections, everything by its default but the number of connections. Panics when something fails.
pub trait SqlPeer: Clone + Send + Sync + 'static {
    /// A pool of [`SIZE`] on the database of that URL: all open, all statements prepared.
    fn open(url: &str) -> impl Future<Output = Self> + Send;

    /// `SELECT 1`, by whichever connection.
    fn one(&self) -> impl Future<Output = ()> + Send;

    /// Reads that row.
    fn read(&self, id: i32) -> impl Future<Output = ()> + Send;

    /// Changes that row.
    fn update(&self, id: i32) -> impl Future<Output = ()> + Send;

    /// Closes all connections.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// A real server, over loopback.
    Postgres,
    /// A file.
    Sqlite,
}

/// What tasks do, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// `SELECT 1`.
    One,
    /// Of five, four read a row and one changes a row, any of them all.
    Mix,
}

/// Who does it, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// What.
    pub work: Work,
    /// How many at once.
    pub tasks: usize,
    /// How long it is watched.
    pub lasts: Duration,
    /// Of the rows that are used.
    pub seed: u64,
}

/// A database that a contender knows, and its round there.
pub type Entry = (Database, fn(String, Load) -> Vec<Figure>);
