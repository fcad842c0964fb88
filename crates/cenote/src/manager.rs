//! The manager: how a resource is opened, checked, cleaned and closed. All of it is user code.

use std::error::Error;
use std::fmt;
use std::future::Future;

use crate::error::ErrorClass;
use crate::pool::Pool;
use crate::sever::Severer;

/// Opens one kind of resource, and knows whether it is still good.
///
/// Only [`open`](Manager::open) is required. Every method may fail, hang or panic: the asynchronous
/// ones have a time limit, a panic counts as a failure, and the pool never loses a slot. No method
/// is called under a lock. The asynchronous ones run in tasks of the pool, or in
/// [`Lease::release`](crate::Lease::release). A caller that gives up does not cancel them.
///
/// A pool wants `M: Manager + 'static`. The trait itself does not ask for it, so that a lease of a
/// `Box<dyn Trait>` can be held in a spawned task.
///
/// ```
/// use std::io;
/// use cenote::{CloseReason, Lease, LeaseEnd, Manager, Pool};
///
/// struct Session {
///     is_connected: bool,
///     in_transaction: bool,
/// }
///
/// struct Sessions;
///
/// impl Manager for Sessions {
///     type Resource = Session;
///     type Error = io::Error;
///
///     async fn open(&self) -> io::Result<Session> {
///         Ok(Session { is_connected: true, in_transaction: false })
///     }
///
///     async fn check(&self, session: &mut Session) -> io::Result<()> {
///         // A real one would send a ping.
///         if session.is_connected { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
///     }
///
///     fn is_broken(&self, session: &mut Session, _: LeaseEnd) -> bool {
///         !session.is_connected
///     }
///
///     fn needs_cleaning(&self, session: &mut Session) -> bool {
///         session.in_transaction
///     }
///
///     async fn clean(&self, session: &mut Session) -> io::Result<()> {
///         session.in_transaction = false; // a real one would roll back
///         Ok(())
///     }
///
///     async fn close(&self, session: Session) -> io::Result<()> {
///         drop(session); // a real one would say goodbye
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::builder(Sessions).max_size(1).build()?;
/// let mut session = pool.acquire().await?;
/// session.in_transaction = true;
/// Lease::release(session).await;
///
/// let mut session = pool.acquire().await?;
/// assert!(!session.in_transaction, "it was cleaned");
/// session.is_connected = false;
/// drop(session);
/// assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
/// # Ok(()) }
/// ```
#[expect(unused_variables, reason = "the names document the methods")]
pub trait Manager: Send + Sync {
    /// The thing that is lent.
    type Resource: Send;
    /// Why it could not be opened, checked, cleaned or closed. Any error will do, also a `String`,
    /// a boxed error or an `anyhow::Error`.
    type Error: Into<Box<dyn Error + Send + Sync>> + fmt::Debug + Send + 'static;

    /// Opens a resource. Limited by `open_timeout`.
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `open_timeout` is over or its runtime shuts down.
    fn open(&self) -> impl Future<Output = Result<Self::Resource, Self::Error>> + Send;

    /// Returns what kind of error this is, so that the [strategy](crate::breaker::Strategy) of the
    /// breaker can tell a wrong password from a refused connection. By default an `io::Error` has
    /// the class of its kind, and any other error is [`ErrorClass::Other`].
    ///
    /// ```
    /// use std::io;
    /// use cenote::Manager;
    /// use cenote::error::ErrorClass;
    ///
    /// struct Sockets;
    ///
    /// impl Manager for Sockets {
    ///     type Resource = ();
    ///     type Error = io::Error;
    ///
    ///     async fn open(&self) -> io::Result<()> {
    ///         Err(io::ErrorKind::ConnectionRefused.into())
    ///     }
    /// }
    ///
    /// let refused = io::ErrorKind::ConnectionRefused.into();
    /// assert_eq!(Sockets.classify(&refused), ErrorClass::Unreachable);
    /// ```
    fn classify(&self, error: &Self::Error) -> ErrorClass {
        ErrorClass::of_any(error)
    }

    /// Finds out whether a resource is alive. An error closes it. Limited by `check_timeout`.
    ///
    /// The pool asks before it lends a resource that was idle for `check_after_idle`, at the
    /// heartbeat, on return if `check_on_return` is set, and after another resource was found dead.
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `check_timeout` is over, and then the resource is
    /// closed, or when its runtime shuts down.
    fn check(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Returns whether a resource is known to be unusable. It is then closed.
    ///
    /// The pool asks at every return and before it lends an idle resource, on the thread of the
    /// caller. So this must be cheap, and do no I/O. `end` tells how the lease has ended: a manager
    /// may not trust a resource whose user has panicked or was cancelled in the middle of
    /// something.
    fn is_broken(&self, resource: &mut Self::Resource, end: LeaseEnd) -> bool {
        false
    }

    /// Returns whether a resource that works is closed all the same, because it is used up or its
    /// state cannot be undone. It is not lent again, and the breaker counts no failure. The pool
    /// asks after [`is_broken`](Manager::is_broken), at the same times.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::{CloseReason, LeaseEnd, Manager, Pool};
    ///
    /// struct Buffers;
    ///
    /// impl Manager for Buffers {
    ///     type Resource = Vec<u8>;
    ///     type Error = String;
    ///
    ///     async fn open(&self) -> Result<Vec<u8>, String> {
    ///         Ok(Vec::new())
    ///     }
    ///
    ///     fn is_spent(&self, buffer: &mut Vec<u8>, _: LeaseEnd) -> bool {
    ///         buffer.capacity() > 1024
    ///     }
    /// }
    ///
    /// let pool = Pool::builder(Buffers).build()?;
    /// pool.acquire().await?.reserve(4096);
    /// assert_eq!(pool.status().closes.by(CloseReason::Refused), 1);
    /// # Ok(()) }
    /// ```
    fn is_spent(&self, resource: &mut Self::Resource, end: LeaseEnd) -> bool {
        false
    }

    /// Returns whether [`clean`](Manager::clean) must run before the next use. The pool asks at
    /// every return, on the thread of the caller. So this must be cheap, and do no I/O.
    fn needs_cleaning(&self, resource: &mut Self::Resource) -> bool {
        false
    }

    /// Returns whether a resource must stay in its [scope](crate::scope()): the next use in that
    /// scope needs this very resource, because it has an open transaction, a changed session or a
    /// subscription.
    ///
    /// It is asked when a [bound](crate::scope::Bound) lease ends inside a scope, on the thread of
    /// the caller. So this must be cheap, and do no I/O. If it returns true, the lease rests in the
    /// scope, as if it were pinned, until this returns false after another use, or the scope ends.
    /// If it returns false and the resource [is broken](Manager::is_broken), the lease leaves the
    /// scope even if it is pinned, and the next use gets another one.
    /// [`Handle`](crate::scope::Handle) has an example.
    fn must_stay(&self, resource: &mut Self::Resource) -> bool {
        false
    }

    /// Makes a resource as good as new, by a rollback or a reset. An error closes it. Limited by
    /// `clean_timeout`.
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `clean_timeout` is over, and then the resource is
    /// closed, or when its runtime shuts down.
    fn clean(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Returns a way to cut a resource from outside, while another task uses it: mostly by shutting
    /// its socket down. The pool asks once, after the open, and uses it only in
    /// [`Pool::sever`](crate::Pool::sever), which has an example.
    fn severer(&self, resource: &mut Self::Resource) -> Option<Severer> {
        None
    }

    /// Returns whether resources share the sessions of their server, as behind a proxy that lends
    /// server connections by the transaction. Then the sessions of a pool cannot be told from those
    /// of others, and a layer that counts them refuses the pool.
    fn shares_sessions(&self) -> bool {
        false
    }

    /// The pool of this manager was built. For [`second_level::On`](crate::second_level::On).
    #[doc(hidden)]
    fn built(&self, pool: &Pool<Self>)
    where
        Self: Sized + 'static,
    {
    }

    /// Closes a resource for good. Its slot is free when this is done, or when `close_timeout` is
    /// over. An error is counted in [`Status::close_failed`](crate::Status::close_failed), and
    /// observers hear of it. The resource is gone all the same.
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `close_timeout` is over or its runtime shuts down.
    fn close(
        &self,
        resource: Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        drop(resource);
        async { Ok(()) }
    }
}

/// How a lease has ended, for [`Manager::is_broken`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::{CloseReason, LeaseEnd, Manager, Pool};
///
/// /// Trusts no session whose user has failed.
/// struct Sessions;
///
/// impl Manager for Sessions {
///     type Resource = ();
///     type Error = String;
///
///     async fn open(&self) -> Result<(), String> {
///         Ok(())
///     }
///
///     fn is_broken(&self, _: &mut (), end: LeaseEnd) -> bool {
///         matches!(end, LeaseEnd::Failed | LeaseEnd::Cancelled)
///     }
/// }
///
/// let pool = Pool::builder(Sessions).build()?;
/// let told = pool.try_with(async |_| Err::<(), _>("out of sync")).await?;
/// assert!(told.is_err());
/// assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseEnd {
    /// No lease has ended: the resource is idle, and about to be lent or checked, or it rests in a
    /// scope.
    Idle,
    /// The lease was dropped or released.
    Returned,
    /// The lease was dropped by a thread that panics.
    Unwinding,
    /// The future of [`Pool::with`](crate::Pool::with), or of a [scope](crate::scope()), was
    /// dropped before it was done.
    Cancelled,
    /// The closure of [`Pool::try_with`](crate::Pool::try_with) returned an error.
    Failed,
}

impl LeaseEnd {
    /// The end of a lease that is dropped here.
    #[inline]
    pub(crate) fn of_drop() -> Self {
        if std::thread::panicking() {
            Self::Unwinding
        } else {
            Self::Returned
        }
    }
}
