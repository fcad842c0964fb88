//! The manager: how a resource is made, checked, cleaned and closed. All of it is user code.

use std::error::Error;
use std::future::Future;

/// Knows how to make one kind of resource, and how to tell whether it is still good.
///
/// Only [`open`](Manager::open) is required. Every method may fail, hang or panic: each runs under a time limit, a
/// panic counts as a failure, and the pool never loses a slot over it. No method is ever called under a lock, and the
/// asynchronous ones never run in a caller's future but in a task of the pool, so that a caller who gives up cannot
/// leave a resource half checked.
///
/// A pool wants `M: Manager + 'static`. The trait itself does not ask for it, so that a lease of a `Box<dyn Trait>` can be held in a
/// spawned task.
///
/// ```
/// use std::io;
/// use cenote::{Manager, Pool};
///
/// struct Files;
///
/// impl Manager for Files {
///     type Resource = Vec<u8>;
///     type Error = io::Error;
///
///     async fn open(&self) -> Result<Vec<u8>, io::Error> {
///         Ok(Vec::with_capacity(4096))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::builder(Files).max_size(2).build()?;
/// let mut buffer = pool.acquire().await?;
/// buffer.extend_from_slice(b"hello");
/// assert_eq!(buffer.len(), 5);
/// # Ok(()) }
/// ```
pub trait Manager: Send + Sync {
    /// What is lent out.
    type Resource: Send;
    /// Why it could not be opened, checked or cleaned.
    type Error: Error + Send + Sync + 'static;

    /// Makes a resource. A slot was reserved for it before this is called. Limited by `open_timeout`.
    ///
    /// # Cancel safety
    /// Runs in a task of the pool. It is dropped midway only when `open_timeout` is over or its runtime shuts down.
    fn open(&self) -> impl Future<Output = Result<Self::Resource, Self::Error>> + Send;

    /// Is it alive? Asked before an idle resource is lent out after `check_after_idle`, on the heartbeat, and on return if
    /// `check_on_return` is set. An error closes it. Limited by `check_timeout`.
    ///
    /// # Cancel safety
    /// Dropped midway only when `check_timeout` is over or its runtime shuts down; the resource is then closed.
    fn check(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = resource;
        async { Ok(()) }
    }

    /// Is it known to be unusable? Asked on every return, in the thread that returns it: cheap, and without I/O.
    fn is_broken(&self, resource: &mut Self::Resource) -> bool {
        let _ = resource;
        false
    }

    /// Must [`clean`](Manager::clean) run before the next user gets it? Asked on every return, like
    /// [`is_broken`](Manager::is_broken).
    fn needs_cleaning(&self, resource: &mut Self::Resource) -> bool {
        let _ = resource;
        false
    }

    /// Rolls back, resets: makes it as good as new. An error closes it. Limited by `clean_timeout`.
    ///
    /// # Cancel safety
    /// Dropped midway only when `clean_timeout` is over or its runtime shuts down; the resource is then closed.
    fn clean(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = resource;
        async { Ok(()) }
    }

    /// Says goodbye: the resource leaves the pool for good. Its slot is free when this is done or `close_timeout` is over.
    ///
    /// # Cancel safety
    /// Dropped midway only when `close_timeout` is over or its runtime shuts down.
    fn close(&self, resource: Self::Resource) -> impl Future<Output = ()> + Send {
        drop(resource);
        async {}
    }
}
