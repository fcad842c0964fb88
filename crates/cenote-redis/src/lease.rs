//! A borrowed connection.

use std::fmt;
use std::ops::{Deref, DerefMut};

use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, PushInfo, RedisFuture, Value};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::manager::Redis;
use crate::session::Session;

/// A connection of a [`Pool`](crate::Pool), for this user alone. It goes back when the lease is
/// dropped.
///
/// Commands run on it as on a connection of the crate `redis`: `lease.get("key").await`, or
/// `&mut lease` where a connection is asked for. Whatever its user leaves behind is undone before
/// the next use: `WATCH`, `MULTI`, another database, another user, subscriptions.
///
/// It dereferences to [`cenote::Lease`], whose functions take it: `cenote::Lease::id(&lease)`,
/// `cenote::Lease::label(&lease, "export")`.
///
/// ```no_run
/// # async fn f(redis: cenote_redis::Pool) -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_redis::redis::{AsyncCommands, cmd, pipe};
///
/// let mut lease = redis.acquire().await?;
/// cmd("WATCH").arg("stock").exec_async(&mut lease).await?;
/// let stock: u32 = lease.get("stock").await?;
/// let sold: Option<()> = pipe().atomic().set("stock", stock - 1).query_async(&mut lease).await?;
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// A call may be dropped at any time. If its command blocks (`BLPOP` and its like), the connection
/// is cut, so that the server hands no element to a caller that is gone. After any other command
/// the connection is lent again once it has answered.
#[must_use = "a lease that is not kept goes back at once"]
pub struct Lease(cenote::Lease<Redis>);

impl Lease {
    pub(crate) fn new(lease: cenote::Lease<Redis>) -> Self {
        Self(lease)
    }

    /// Returns the messages that the server sends from now on without being asked: those of
    /// subscribed channels. It ends with the lease or with the connection.
    ///
    /// Messages need RESP3 (`?protocol=resp3` in the URL). The receiver has no limit, so read it.
    ///
    /// ```no_run
    /// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_redis::Pool;
    /// use cenote_redis::redis::cmd;
    ///
    /// let redis = Pool::from_url("redis://localhost?protocol=resp3").build()?;
    /// let mut lease = redis.acquire().await?;
    /// let mut messages = lease.messages();
    /// cmd("SUBSCRIBE").arg("news").exec_async(&mut lease).await?;
    /// while let Some(message) = messages.recv().await {
    ///     println!("{message:?}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn messages(&mut self) -> UnboundedReceiver<PushInfo> {
        self.0.listen()
    }

    /// Ends the lease and closes the connection.
    pub fn discard(this: Self) {
        cenote::Lease::discard(this.0);
    }

    /// Ends the lease, and undoes here what was left behind. After a plain drop a task of the pool
    /// does it.
    ///
    /// # Cancel safety
    /// If this future is dropped, a task of the pool does the rest.
    pub async fn release(this: Self) {
        cenote::Lease::release(this.0).await;
    }

    /// Takes the connection out of the pool for good. Its slot is free at once.
    pub fn detach(this: Self) -> Session {
        cenote::Lease::detach(this.0)
    }

    /// Returns the lease of the universal pool.
    pub fn into_inner(this: Self) -> cenote::Lease<Redis> {
        this.0
    }
}

impl ConnectionLike for Lease {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

impl Deref for Lease {
    type Target = cenote::Lease<Redis>;

    fn deref(&self) -> &cenote::Lease<Redis> {
        &self.0
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut cenote::Lease<Redis> {
        &mut self.0
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
