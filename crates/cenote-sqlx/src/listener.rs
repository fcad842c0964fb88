//! Notifications of PostgreSQL on a connection of the handle.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use futures_core::stream::BoxStream;
use sqlx::postgres::{PgListener, PgNotification};
use sqlx::{Error, Postgres};
use sqlx_core::ext::async_stream::TryAsyncStream;

use crate::db::Db;
use crate::sqlx_pool::SqlxPool;

impl Db<Postgres> {
    /// Returns a listener for `NOTIFY`, which has a connection of this handle until it is dropped.
    ///
    /// It is sqlx's own `PgListener`: it connects again when its connection is lost, and subscribes
    /// to its channels again. Its connection counts against `max_size` and is listed in
    /// `db.pool().leases()`. When the handle is closed, `recv` returns [`Error::PoolClosed`].
    ///
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = cenote_servers::postgres::find()?;
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::postgres(server.url()).build()?;
    /// let mut listener = db.listener().await?;
    /// listener.listen("cenote_orders").await?;
    /// sqlx::query("SELECT pg_notify('cenote_orders', 'a chair')").execute(&db).await?;
    /// assert_eq!(listener.recv().await?.payload(), "a chair");
    /// assert_eq!(db.pool().leases()[0].label.as_deref(), Some("listener"));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives back what it has acquired.
    #[track_caller]
    pub fn listener(&self) -> impl Future<Output = Result<Listener, Error>> + Send {
        let site = Location::caller();
        async move {
            let pool = self.sqlx_pool_for("listener", 1, site).await?;
            let listener = PgListener::connect_with(&pool).await?;
            Ok(Listener { listener, pool })
        }
    }
}

/// A `PgListener` on a connection of a [`Db`], from [`Db::listener`]. It derefs to sqlx's type, and
/// `&mut *listener` is an `Executor`.
pub struct Listener {
    // In this order: the listener gives its connection back before the pool is closed.
    listener: PgListener,
    pool: SqlxPool<Postgres>,
}

impl Listener {
    /// Returns a stream of all notifications.
    pub fn into_stream(self) -> BoxStream<'static, Result<PgNotification, Error>> {
        Box::pin(TryAsyncStream::new(move |notifications| async move {
            // All of it, so that the pool lives as long as the stream.
            let mut whole = self;
            loop {
                let notification = whole.listener.recv().await?;
                notifications.r#yield(notification).await;
            }
        }))
    }

    /// Ends all subscriptions, and waits until the connection is back in the handle.
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting.
    pub async fn close(self) {
        let Self { listener, pool } = self;
        drop(listener);
        pool.close().await;
    }
}

impl Deref for Listener {
    type Target = PgListener;

    fn deref(&self) -> &PgListener {
        &self.listener
    }
}

impl DerefMut for Listener {
    fn deref_mut(&mut self) -> &mut PgListener {
        &mut self.listener
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}
