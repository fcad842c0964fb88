//! The handle.

use std::fmt;
use std::ops::Deref;

use cenote::second_level::On;

use crate::builder::Builder;
use crate::config::Config;
use crate::manager::{Channels, Connections};

/// A channel that is lent. It dereferences to its [`Channel`](crate::Channel), and goes back when
/// it is dropped.
pub type Lease = cenote::Lease<On<Channels>>;

/// A pool of channels to one server, on connections that they share. It is a cheap handle: clone it
/// and share it.
///
/// It dereferences to [`cenote::Pool`], for `acquire`, `status`, `leases`, `warm`, `close_within`
/// and all else.
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_amqp::Pool;
/// use cenote_amqp::lapin::BasicProperties;
///
/// let pool = Pool::from_url("amqp://guest:guest@localhost:5672/%2f").confirms(true).build()?;
/// let channel = pool.acquire().await?;
/// channel.publish("", "jobs", b"resize 17", BasicProperties::default()).await?;
/// drop(channel);
/// assert_eq!((pool.status().idle, pool.connections().status().in_use), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Pool {
    pool: cenote::Pool<On<Channels>>,
}

impl Pool {
    pub(crate) fn new(pool: cenote::Pool<On<Channels>>) -> Self {
        Self { pool }
    }

    /// Begins to build a pool from a URL like `amqp://user:password@host:5672/%2f`, whose path is
    /// the virtual host.
    pub fn from_url(url: impl Into<String>) -> Builder {
        Builder::new(url.into())
    }

    /// Begins to build a pool from settings that were read from a file.
    pub fn from_config(config: Config) -> Builder {
        config.into_builder()
    }

    /// Returns the pool of the connections. A channel that is open keeps a lease of it.
    ///
    /// Its `invalidate` replaces all connections, and with them the channels. Its `max_size` may
    /// have to grow when `max_size` of this pool grows by `resize`.
    pub fn connections(&self) -> &cenote::Pool<Connections> {
        self.pool.base()
    }
}

impl Deref for Pool {
    type Target = cenote::Pool<On<Channels>>;

    fn deref(&self) -> &cenote::Pool<On<Channels>> {
        &self.pool
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}
