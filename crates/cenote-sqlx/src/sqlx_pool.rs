//! A part of the connections as a pool of sqlx, for code that needs that type.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use cenote::scope::BindError;
use cenote::{HeldSlot, Lease, Manager};
use sqlx::Error;
use sqlx::pool::PoolOptions;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::error::from_bind;
use crate::manager::Sql;
use crate::sandbox::WAY_OUT;

/// Stands for no limit. sqlx adds it to the time of day.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl<DB: Dialect> Db<DB> {
    /// Turns `connections` of this handle into a pool of sqlx, for code that needs that type:
    /// session stores, job queues, migrations of other libraries.
    ///
    /// The pool has the same options and settings, and its connections count against `max_size`.
    /// They are listed in `db.pool().leases()` with the line of this call. The server never has
    /// more than `max_size` connections of both.
    ///
    /// Within the pool the rules of sqlx apply, not those of this crate: a session is not reset,
    /// nothing is cancelled on the server, and writers of SQLite do not queue.
    /// [`credentials`](crate::Builder::credentials) are asked for once; after a change call
    /// `set_connect_options`, or make another pool.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    /// use cenote_sqlx::Db;
    ///
    /// /// Code that takes sqlx's type.
    /// async fn count(pool: sqlx::SqlitePool) -> Result<i64, sqlx::Error> {
    ///     sqlx::query_scalar("SELECT count(*) FROM sqlite_master").fetch_one(&pool).await
    /// }
    ///
    /// let db = Db::sqlite(url).max_size(5).build()?;
    /// let pool = db.sqlx_pool(2).await?;
    /// assert_eq!(count(pool.clone()).await?, 0);
    /// assert_eq!(db.pool().status().in_use, 2);
    /// assert_eq!(db.pool().leases()[0].label.as_deref(), Some("sqlx_pool"));
    ///
    /// pool.close().await;
    /// assert_eq!(db.pool().status().in_use, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives back what it has acquired.
    #[track_caller]
    pub fn sqlx_pool(
        &self,
        connections: u32,
    ) -> impl Future<Output = Result<SqlxPool<DB>, Error>> + Send {
        self.sqlx_pool_for("sqlx_pool", connections, Location::caller())
    }

    pub(crate) async fn sqlx_pool_for(
        &self,
        label: &'static str,
        connections: u32,
        site: &'static Location<'static>,
    ) -> Result<SqlxPool<DB>, Error> {
        self.refuse_pool(connections)?;
        let template = Arc::clone(&self.pool().manager().template);
        let options = template.fresh_options().await?;
        let deadline = self.pool().deadline();
        let mut slots = Vec::new();
        for _ in 0..connections {
            slots.push(self.hold_slot(label, site, deadline).await?);
        }
        let config = self.pool().config();
        let pool = PoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(config.acquire_timeout.unwrap_or(FOR_EVER))
            .idle_timeout(config.idle_timeout)
            .max_lifetime(config.max_lifetime)
            .after_connect(move |connection, _| {
                let template = Arc::clone(&template);
                Box::pin(async move { template.apply_settings(connection).await })
            })
            .connect_lazy_with(options);
        let (stop, stopped) = oneshot::channel();
        let keeper = tokio::spawn(keep(pool.clone(), slots, stopped));
        Ok(SqlxPool { pool, stop, keeper })
    }

    fn refuse_pool(&self, connections: u32) -> Result<(), Error> {
        let max_size = self.pool().status().max_size;
        let fits = usize::try_from(connections).is_ok_and(|asked| asked < max_size);
        let why = if self.sandbox.is_some() {
            format!("a sandbox has one connection, and a pool of sqlx needs others: {WAY_OUT}")
        } else if self.pool().manager().template.pooled {
            String::from(
                "a pool of sqlx keeps statements and subscriptions in its sessions, which do not \
                 last behind a proxy that lends sessions by the transaction",
            )
        } else if connections == 0 || !fits {
            format!(
                "{connections} of {max_size} connections were asked for: take at least one, and \
                 leave at least one to the handle (raise `max_size`)"
            )
        } else {
            return Ok(());
        };
        Err(Error::InvalidArgument(why))
    }

    /// Acquires a connection, closes it, and keeps its slot.
    async fn hold_slot(
        &self,
        label: &'static str,
        site: &'static Location<'static>,
        deadline: Option<Instant>,
    ) -> Result<HeldSlot<Sql<DB>>, Error> {
        let lease = self.pool().acquire_at(site, deadline).await;
        let lease = lease.map_err(|error| from_bind(BindError::Acquire(error)))?;
        let (session, slot) = Lease::hold_slot(lease);
        slot.label(label);
        // A close that fails or hangs drops the connection.
        let limit = self.pool().config().close_timeout;
        let _ = tokio::time::timeout(limit, self.pool().manager().close(session)).await;
        Ok(slot)
    }
}

/// Gives the slots back when the pool of sqlx is closed, its guard is dropped, or the handle is
/// closed; and not before the last connection is closed.
async fn keep<DB: Dialect>(
    pool: sqlx::Pool<DB>,
    slots: Vec<HeldSlot<Sql<DB>>>,
    stopped: oneshot::Receiver<()>,
) {
    {
        let mut closed = pin!(pool.close_event());
        let mut stopped = pin!(stopped);
        let mut over = pin!(async {
            if let Some(slot) = slots.first() {
                slot.pool_closed().await;
            }
        });
        poll_fn(|context| {
            let ends = [
                closed.as_mut().poll(context).is_ready(),
                stopped.as_mut().poll(context).is_ready(),
                over.as_mut().poll(context).is_ready(),
            ];
            match ends.contains(&true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
    pool.close().await;
    drop(slots);
}

/// A pool of sqlx whose connections count as connections of a [`Db`], from [`Db::sqlx_pool`].
///
/// It derefs to the pool; `pool.clone()` returns a `sqlx::Pool` to pass along. The pool is closed
/// when this is dropped, when any of its clones is closed, or when the handle is closed. The
/// connections go back to the handle as soon as all of them are closed.
#[must_use = "a pool that is not kept is closed at once"]
pub struct SqlxPool<DB: Dialect> {
    pool: sqlx::Pool<DB>,
    /// The keeper ends when this is dropped.
    stop: oneshot::Sender<()>,
    keeper: JoinHandle<()>,
}

impl<DB: Dialect> SqlxPool<DB> {
    /// Closes the pool, and waits until its connections are closed and back in the handle.
    ///
    /// # Cancel safety
    /// The first poll closes the pool. Dropping this future only stops the waiting.
    pub async fn close(self) {
        drop(self.stop);
        // A keeper that is gone has given the slots back.
        let _ = self.keeper.await;
    }
}

impl<DB: Dialect> Deref for SqlxPool<DB> {
    type Target = sqlx::Pool<DB>;

    fn deref(&self) -> &sqlx::Pool<DB> {
        &self.pool
    }
}

impl<DB: Dialect> fmt::Debug for SqlxPool<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlxPool")
            .field("database", &DB::NAME)
            .field("size", &self.pool.size())
            .finish_non_exhaustive()
    }
}
