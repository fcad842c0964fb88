//! The handle: a connection for everyone. It puts each command where it can run.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use cenote::scope::{Bound, Scope};
use cenote::status::UNKNOWN_SITE;
use cenote::{AcquireError, Leftover, Status, WarmError};
use redis::aio::ConnectionLike;
use redis::{Cmd, ConnectionInfo, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use crate::builder::Builder;
use crate::config::Config;
use crate::error::{from_bind, refused};
use crate::lanes::Lanes;
use crate::lease::Lease;
use crate::manager::Redis;
use crate::reading::{Reading, Route};

/// A Redis server: a cheap handle that is cloned and shared. It is a [`ConnectionLike`], so that
/// commands of `AsyncCommands`, `Cmd` and `Pipeline` run on it.
///
/// - A command that leaves nothing behind goes to a *lane*, a connection that many callers share.
///   So does an atomic pipeline.
/// - A blocking command (`BLPOP`, `XREAD BLOCK`) has a connection of its own while it runs.
/// - A command that others must follow on the same connection (`WATCH`, `MULTI`, `SELECT`) is
///   refused. Acquire a [`Lease`] for it, or run it in a [scope](cenote::scope()): there the
///   connection stays with the scope until nothing is left behind, and all commands of the scope
///   run on it.
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_redis::Pool;
/// use cenote_redis::redis::AsyncCommands;
///
/// let mut redis = Pool::from_url("redis://localhost").build()?;
/// redis.set::<_, _, ()>("greeting", "hello").await?;
/// let (_, job): (String, String) = redis.blpop("jobs", 0.0).await?;
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// A call may be dropped at any time. A command that was sent may have run. No caller ever gets the
/// answer to another caller's command.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    pool: cenote::Pool<Redis>,
    lanes: Option<Arc<Lanes>>,
}

impl Pool {
    pub(crate) fn new(pool: cenote::Pool<Redis>, lanes: Option<Arc<Lanes>>) -> Self {
        let inner = Arc::new(Inner { pool, lanes });
        Self { inner }
    }

    /// Begins a handle to the server that a URL names: `redis://user:password@host:6379/db`,
    /// `rediss://` for TLS (feature `rustls`), `redis+unix:///path`; `?protocol=resp3` for messages.
    pub fn from_url(url: impl Into<String>) -> Builder {
        let url = url.into();
        let config = Config {
            url,
            ..Config::default()
        };
        Self::from_config(config)
    }

    /// Begins a handle with settings that were read from a file.
    pub fn from_config(config: Config) -> Builder {
        Builder::new(config, None)
    }

    /// Begins a handle to a server that the crate `redis` describes.
    ///
    /// ```
    /// use cenote_redis::Pool;
    /// use cenote_redis::redis::{ConnectionAddr, IntoConnectionInfo};
    ///
    /// let info = ConnectionAddr::Tcp("localhost".into(), 6379).into_connection_info()?;
    /// assert!(Pool::from_connection_info(info).build().is_ok());
    /// # Ok::<_, cenote_redis::redis::RedisError>(())
    /// ```
    pub fn from_connection_info(info: ConnectionInfo) -> Builder {
        Builder::new(Config::default(), Some(info))
    }

    /// Waits for a connection of one's own, within `acquire_timeout`.
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Lease, AcquireError<RedisError>>> + Send {
        let acquire = self.inner.pool.acquire_at(Location::caller(), None);
        async move { acquire.await.map(Lease::new) }
    }

    /// As [`acquire`](Pool::acquire), within `limit`. `None`: for ever.
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Result<Lease, AcquireError<RedisError>>> + Send {
        let acquire = self.inner.pool.acquire_within(limit);
        async move { acquire.await.map(Lease::new) }
    }

    /// Lends a connection that is idle now, without waiting.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Lease>, AcquireError<RedisError>> {
        let lease = self.inner.pool.try_acquire()?;
        Ok(lease.map(Lease::new))
    }

    /// Opens the connections that should be there from the start, and one for the first lane.
    ///
    /// # Cancel safety
    /// The opens go on if this future is dropped.
    pub async fn warm(&self) -> Result<(), WarmError<RedisError>> {
        self.inner.pool.warm().await?;
        match self.inner.pool.annex() {
            Some(lanes) => lanes.warm().await,
            None => Ok(()),
        }
    }

    /// Returns the pool of connections. Its annex has those of the lanes.
    pub fn pool(&self) -> &cenote::Pool<Redis> {
        &self.inner.pool
    }

    /// Returns the number of commands in flight on each lane that is in use.
    pub fn lanes(&self) -> Vec<usize> {
        let lanes = self.inner.lanes.as_ref();
        lanes.map_or_else(Vec::new, |lanes| lanes.in_flight())
    }

    /// Returns how many callers wait because the lanes are full.
    pub fn held_back(&self) -> usize {
        let lanes = self.inner.lanes.as_ref();
        lanes.map_or(0, |lanes| lanes.waiting())
    }

    /// Returns a snapshot of the pool of connections, lanes included.
    pub fn status(&self) -> Status {
        self.inner.pool.status()
    }

    /// Retires every connection that is open now, lanes included: for failover and rotated secrets.
    pub fn invalidate(&self) {
        self.inner.pool.invalidate();
        if let Some(lanes) = &self.inner.lanes {
            lanes.retire_all();
        }
    }

    /// Closes the pool. Waiters are told at once. Commands in flight are answered.
    pub fn close(&self) {
        self.inner.pool.close();
        if let Some(lanes) = &self.inner.lanes {
            lanes.close();
        }
    }

    /// As [`close`](Pool::close), and waits up to `limit` until all connections are closed. Returns
    /// what was still in use.
    ///
    /// # Cancel safety
    /// The pool stays closed if this future is dropped.
    pub async fn close_within(&self, limit: Duration) -> Leftover {
        self.close();
        self.inner.pool.close_within(limit).await
    }

    /// Returns the lanes if the command goes there. `None`: it has a connection of its own.
    fn lanes_for(&self, reading: Option<&Reading>) -> RedisResult<Option<&Arc<Lanes>>> {
        if Scope::is_inside() && is_pinned(&self.inner.pool) {
            return Ok(None);
        }
        match reading.map_or(Route::Lane, Reading::route) {
            Route::Lane => Ok(self.inner.lanes.as_ref()),
            Route::Lease => Ok(None),
            Route::Stay if Scope::is_inside() => Ok(None),
            Route::Stay => {
                let name = reading.map_or("", |reading| &reading.name);
                Err(refused(format!(
                    "`{name}` is followed by other commands on the same connection: acquire a \
                     lease, or run them in `cenote::scope`"
                )))
            }
            Route::Nowhere(why) => Err(refused(why)),
        }
    }

    /// Binds the connection of the scope, or one for a single call.
    async fn bind(&self, reading: Option<Reading>) -> RedisResult<Bound<Redis>> {
        let bound = self.inner.pool.bind_at(UNKNOWN_SITE, None).await;
        let bound = bound.map_err(from_bind)?;
        if let Some(reading) = reading {
            cenote::Lease::label(&bound, reading.name);
        }
        Ok(bound)
    }

    fn home(&self) -> i64 {
        self.inner.pool.manager().0.login.db()
    }
}

fn is_pinned(pool: &cenote::Pool<Redis>) -> bool {
    Scope::current().is_some_and(|scope| scope.is_pinned(pool))
}

impl ConnectionLike for Pool {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let reading = Reading::of_command(command, self.home());
            match self.lanes_for(reading.as_ref())? {
                Some(lanes) => {
                    let ride = lanes.board().await?;
                    let mut connection = ride.connection();
                    ride.answer(connection.send_packed_command(command)).await
                }
                None => self.bind(reading).await?.req_packed_command(command).await,
            }
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let reading = Reading::of_pipeline(pipeline, self.home());
            match self.lanes_for(reading.as_ref())? {
                Some(lanes) => {
                    let ride = lanes.board().await?;
                    let mut connection = ride.connection();
                    let send = connection.send_packed_commands(pipeline, offset, count);
                    ride.answer(send).await
                }
                None => {
                    let mut bound = self.bind(reading).await?;
                    bound.req_packed_commands(pipeline, offset, count).await
                }
            }
        })
    }

    fn get_db(&self) -> i64 {
        self.home()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("pool", &self.inner.pool)
            .field("lanes", &self.lanes())
            .finish()
    }
}
