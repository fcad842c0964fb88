//! The second level: a pool whose resources are built on leases of another pool.
//!
//! You need this module for resources that live on a connection and are pooled by themselves:
//! sessions of an object mapper, channels of AMQP, streams of HTTP/2. [`Pool::on`] builds such a
//! pool. It has settings of its own, and its resources obey the rules of both pools:
//!
//! - A resource keeps a lease of the base pool from its open to its close. The lease is listed in
//!   [`Pool::leases`] of the base with the name of the upper pool. It is no leak.
//! - If the base pool was closed, invalidated or resized, or if the base resource is broken or past
//!   its lifetime, the resource is closed: at once if it is idle, when it comes back, or before it
//!   is lent again.
//! - While callers wait for a base pool that has no more to lend, idle resources above it are given
//!   up, down to `min_size` and `min_idle` of their pool.
//! - A resource that was closed without an error gives its lease back. In every other case the base
//!   resource is closed too: after an error, a panic or a timeout of `close` or `open`, and after a
//!   resource was dropped without `close`. [`Upper::spoils_base`] can make an exception.
//! - An open waits for the base pool no longer than nine tenths of its own `open_timeout` and
//!   `acquire_timeout`. So the caller learns which call sites hold the leases of the base: the
//!   [`AcquireError`](crate::AcquireError) of the base is the cause of the failed open.
//! - The upper pool keeps a handle to the base pool, which stays open as long. Close the upper pool
//!   first, and then the base.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cenote::second_level::Upper;
//! use cenote::{Manager, Pool};
//!
//! struct Connections;
//!
//! impl Manager for Connections {
//!     type Resource = Vec<String>; // a real one would be a socket
//!     type Error = String;
//!
//!     async fn open(&self) -> Result<Vec<String>, String> {
//!         Ok(Vec::new())
//!     }
//! }
//!
//! struct Session {
//!     pending: usize,
//! }
//!
//! struct Sessions;
//!
//! impl Upper for Sessions {
//!     type Base = Connections;
//!     type Resource = Session;
//!     type Error = String;
//!
//!     async fn open(&self, connection: &mut Vec<String>) -> Result<Session, String> {
//!         connection.push("begin session".to_owned());
//!         Ok(Session { pending: 0 })
//!     }
//!
//!     fn needs_cleaning(&self, session: &mut Session, _: &mut Vec<String>) -> bool {
//!         session.pending > 0
//!     }
//!
//!     async fn clean(&self, session: &mut Session, _: &mut Vec<String>) -> Result<(), String> {
//!         session.pending = 0;
//!         Ok(())
//!     }
//! }
//!
//! let connections = Pool::builder(Connections).max_size(4).build()?;
//! let sessions = Pool::on(&connections, Sessions).name("sessions").max_uses(100).build()?;
//!
//! let mut session = sessions.acquire().await?;
//! session.pending += 1;
//! assert_eq!(session.base().len(), 1);
//! assert_eq!(connections.leases()[0].label.as_deref(), Some("pool `sessions`"));
//! # Ok(()) }
//! ```

mod built;
mod desk;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::{Arc, OnceLock, Weak};

pub use built::Built;
use desk::Desk;

use crate::builder::Builder;
use crate::ledger::Recall;
use crate::manager::{LeaseEnd, Manager};
use crate::pool::Pool;
use crate::registry::Living;
use crate::shell::kind::Threads;
use crate::shell::shared::Shared;

/// The resource of the base pool.
type BaseOf<U> = <<U as Upper>::Base as Manager>::Resource;

/// Opens one kind of resource on the resources of a base pool.
///
/// It is to a pool of the second level what [`Manager`] is to any pool: its methods are called at
/// the same times, have the same time limits, and get the base resource in addition. The
/// [module](self) has an example.
#[expect(unused_variables, reason = "the names document the methods")]
pub trait Upper: Send + Sync + 'static {
    /// The manager of the base pool.
    type Base: Manager + 'static;
    /// The thing that is lent, without its base.
    type Resource: Send;
    /// Why it could not be opened, checked, cleaned or closed.
    type Error: Into<Box<dyn Error + Send + Sync>> + fmt::Debug + Send + 'static;

    /// Opens a resource on a base resource. See [`Manager::open`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `open_timeout` is over or its runtime shuts down. The
    /// base resource is then closed.
    fn open(
        &self,
        base: &mut BaseOf<Self>,
    ) -> impl Future<Output = Result<Self::Resource, Self::Error>> + Send;

    /// Returns whether the base resource must be closed after an open failed with this error. By
    /// default it must. On a shared base, the other resources are closed when they come back.
    fn spoils_base(&self, error: &Self::Error) -> bool {
        true
    }

    /// Finds out whether a resource is alive. See [`Manager::check`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `check_timeout` is over or its runtime shuts down.
    fn check(
        &self,
        resource: &mut Self::Resource,
        base: &mut BaseOf<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Returns whether a resource is known to be unusable. See [`Manager::is_broken`]. The manager
    /// of the base pool is asked about the base resource, too.
    fn is_broken(
        &self,
        resource: &mut Self::Resource,
        base: &mut BaseOf<Self>,
        end: LeaseEnd,
    ) -> bool {
        false
    }

    /// Returns whether a resource that works is closed all the same. See [`Manager::is_spent`].
    fn is_spent(
        &self,
        resource: &mut Self::Resource,
        base: &mut BaseOf<Self>,
        end: LeaseEnd,
    ) -> bool {
        false
    }

    /// Returns whether [`clean`](Upper::clean) must run before the next use. See
    /// [`Manager::needs_cleaning`].
    fn needs_cleaning(&self, resource: &mut Self::Resource, base: &mut BaseOf<Self>) -> bool {
        false
    }

    /// Returns whether a resource must stay in its scope. See [`Manager::must_stay`].
    fn must_stay(&self, resource: &mut Self::Resource, base: &mut BaseOf<Self>) -> bool {
        false
    }

    /// Makes a resource as good as new. See [`Manager::clean`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `clean_timeout` is over or its runtime shuts down.
    fn clean(
        &self,
        resource: &mut Self::Resource,
        base: &mut BaseOf<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Closes a resource for good. See [`Manager::close`]. Then the base resource goes back to its
    /// pool, which cleans it by its own rules. If this fails, the base resource is closed, too.
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `close_timeout` is over or its runtime shuts down.
    /// The base resource is then closed.
    fn close(
        &self,
        resource: Self::Resource,
        base: &mut BaseOf<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        drop(resource);
        async { Ok(()) }
    }
}

/// The manager of a pool of the second level, made by [`Pool::on`].
pub struct On<U: Upper> {
    upper: U,
    base: Pool<U::Base>,
    desk: Arc<Desk<U::Base>>,
    /// The line of code that made it: the call site of its leases of the base pool.
    site: &'static Location<'static>,
    pool: OnceLock<Weak<Shared<Threads<Self>>>>,
}

impl<U: Upper> Pool<On<U>> {
    /// Begins to build a pool of the resources that `upper` opens on leases of `base`, each on a
    /// lease of its own. The module [`second_level`](crate::second_level) has an example.
    #[track_caller]
    pub fn on(base: &Pool<U::Base>, upper: U) -> Builder<On<U>> {
        Builder::new(On {
            upper,
            base: base.clone(),
            desk: Arc::new(Desk::default()),
            site: Location::caller(),
            pool: OnceLock::new(),
        })
    }

    /// Returns the pool below this one.
    ///
    /// ```
    /// # use cenote::{Manager, Pool, second_level::Upper};
    /// # struct Streams;
    /// # impl Upper for Streams {
    /// #     type Base = cenote::Closures<u8>;
    /// #     type Resource = ();
    /// #     type Error = String;
    /// #     async fn open(&self, _: &mut u8) -> Result<(), String> { Ok(()) }
    /// # }
    /// let base = Pool::from_fn(async || Ok::<_, &str>(7)).name("connections").build()?;
    /// let streams = Pool::on(&base, Streams).build()?;
    /// assert_eq!(streams.base().name(), "connections");
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn base(&self) -> &Pool<U::Base> {
        &self.manager().base
    }
}

impl<U: Upper> Builder<On<U>>
where
    BaseOf<U>: Clone,
{
    /// Builds up to `most` resources on one lease of the base pool, for connections that carry
    /// several streams. Each resource has a clone of the base resource. It is opened on the lease
    /// with the fewest resources that has room and is fit, or else on a new lease. A lease goes
    /// back when its last resource is closed, or when its base is found broken.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::{Manager, Pool, second_level::Upper};
    /// # struct Streams;
    /// # impl Upper for Streams {
    /// #     type Base = cenote::Closures<u8>;
    /// #     type Resource = ();
    /// #     type Error = String;
    /// #     async fn open(&self, _: &mut u8) -> Result<(), String> { Ok(()) }
    /// # }
    /// let connections = Pool::from_fn(async || Ok::<_, &str>(7)).build()?;
    /// let streams = Pool::on(&connections, Streams).shared_by(2).build()?;
    /// let _three = (streams.acquire().await?, streams.acquire().await?, streams.acquire().await?);
    /// assert_eq!(connections.status().in_use, 2);
    /// # Ok(()) }
    /// ```
    pub fn shared_by(mut self, most: usize) -> Self {
        self.manager.desk = Arc::new(Desk::shared_by(most, BaseOf::<U>::clone));
        self
    }
}

impl<U: Upper> On<U> {
    /// Returns what opens the resources.
    pub fn upper(&self) -> &U {
        &self.upper
    }

    /// The pool of this manager.
    fn pool(&self) -> Option<Arc<Shared<Threads<Self>>>> {
        self.pool.get()?.upgrade()
    }

    /// Closes the idle resources whose bases are wanted back. If callers wait for the base pool,
    /// those are closed that are built on the lease of the longest idle one.
    fn give_up(pool: &Pool<Self>) {
        let mut crowded = false;
        pool.shared.retain(&mut |built| match built.recalls() {
            Recall::Not => true,
            Recall::WhenIdle { .. } => {
                crowded = true;
                true
            }
            Recall::Now => false,
        });
        let mut chosen = None;
        if crowded && is_spare(&pool.shared, 1) {
            pool.shared
                .retain(&mut |built| *chosen.get_or_insert(built.lease()) != built.lease());
        }
    }
}

/// Returns whether the pool can do without one resource more, and without `idle` idle ones.
fn is_spare<U: Upper>(pool: &Shared<Threads<On<U>>>, idle: usize) -> bool {
    let (status, limits) = (Living::status(pool), &pool.limits);
    let is_idle = status.idle >= limits.min_idle + idle;
    is_idle && status.waiting == 0 && status.total > limits.min_size
}

impl<U: Upper> Manager for On<U> {
    type Resource = Built<U>;
    /// Of the upper, or the [`AcquireError`](crate::AcquireError) of the base pool.
    type Error = Box<dyn Error + Send + Sync>;

    async fn open(&self) -> Result<Built<U>, Self::Error> {
        let mut lower = self.lower().await?;
        match self.upper.open(lower.base()).await {
            Ok(resource) => Ok(Built::new(resource, lower)),
            Err(error) => {
                lower.is_sound = !self.upper.spoils_base(&error);
                Err(error.into())
            }
        }
    }

    async fn check(&self, built: &mut Built<U>) -> Result<(), Self::Error> {
        let (resource, base) = built.parts();
        self.upper.check(resource, base).await.map_err(Into::into)
    }

    fn is_broken(&self, built: &mut Built<U>, end: LeaseEnd) -> bool {
        let (resource, base) = built.parts();
        self.upper.is_broken(resource, base, end)
            || self.base.manager().is_broken(base, LeaseEnd::Idle)
    }

    fn needs_cleaning(&self, built: &mut Built<U>) -> bool {
        let (resource, base) = built.parts();
        self.upper.needs_cleaning(resource, base)
    }

    fn must_stay(&self, built: &mut Built<U>) -> bool {
        let (resource, base) = built.parts();
        self.upper.must_stay(resource, base)
    }

    async fn clean(&self, built: &mut Built<U>) -> Result<(), Self::Error> {
        let (resource, base) = built.parts();
        self.upper.clean(resource, base).await.map_err(Into::into)
    }

    async fn close(&self, built: Built<U>) -> Result<(), Self::Error> {
        let (resource, mut lower) = built.take_apart();
        let closed = self.upper.close(resource, lower.base()).await;
        lower.is_sound = closed.is_ok();
        closed.map_err(Into::into)
    }

    fn built(&self, pool: &Pool<Self>) {
        let _ = self.pool.set(Arc::downgrade(&pool.shared.0));
        let pool = pool.downgrade();
        let look = move || pool.upgrade().inspect(Self::give_up).is_some();
        self.base.shared.uppers.add(Arc::new(look));
    }

    fn is_spent(&self, built: &mut Built<U>, end: LeaseEnd) -> bool {
        let (resource, base) = built.parts();
        if self.upper.is_spent(resource, base, end) {
            return true;
        }
        match built.recalls() {
            Recall::Not => false,
            Recall::Now => true,
            Recall::WhenIdle { .. } if end == LeaseEnd::Idle => false,
            Recall::WhenIdle { .. } => self.pool().is_none_or(|pool| is_spare(&pool, 0)),
        }
    }
}

impl<U: Upper> fmt::Debug for On<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("On")
            .field("base", &self.base.name())
            .finish_non_exhaustive()
    }
}
