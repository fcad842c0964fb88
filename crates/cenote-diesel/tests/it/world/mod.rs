//! The backends of diesel-async: each with a table `t (a)` of its own.

pub(crate) mod mysql;
pub(crate) mod postgres;
mod sqlite;

use cenote::Pool;
use cenote_diesel::Diesel;
use cenote_diesel::diesel_async::pooled_connection::PoolableConnection;

pub(crate) use mysql::My;
pub(crate) use postgres::Pg;
pub(crate) use sqlite::Lite;

pub(crate) trait World: Sized {
    type C: PoolableConnection + 'static;

    /// On the server that all tests share. No other test may use `name`.
    async fn new(name: &str) -> Self;

    fn manager(&self) -> Diesel<Self::C>;

    /// Returns the rows that are committed, by a connection beside the pool.
    async fn rows(&self) -> Vec<i32>;

    /// Returns whether a transaction is open. The connection is not used after that.
    async fn is_open(connection: &mut Self::C) -> bool;

    /// Returns a number by way of the server.
    async fn echo(connection: &mut Self::C, number: i32) -> i32;

    fn pool(&self, size: usize) -> Pool<Diesel<Self::C>> {
        crate::pool(self.manager(), size)
    }
}

/// Runs promises, which are generic over the world, on each backend. SQLite's wrapper waits for
/// dropped calls, which only works on several threads.
macro_rules! on_each_backend {
    ($($promise:ident),* $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let name = concat!("pg_", stringify!($promise));
                super::$promise::<$crate::world::Pg>(name).await;
            })*
        }
        mod mysql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let name = concat!("my_", stringify!($promise));
                super::$promise::<$crate::world::My>(name).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let name = concat!("lite_", stringify!($promise));
                super::$promise::<$crate::world::Lite>(name).await;
            })*
        }
    };
}
pub(crate) use on_each_backend;
