//! Hooks: what a user wants asked before a resource is lent, or goes back to idle.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An asynchronous question about a resource.
pub(crate) type Hook<R> =
    Arc<dyn for<'a> Fn(&'a mut R) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> + Send + Sync>;

/// An `async fn(&mut R) -> bool`, or an async closure that captures nothing: `async |conn: &mut Conn| conn.ping().await`.
///
/// It is implemented for every such function; there is no need to implement it. What needs state of its own is better put into a
/// [`Manager`](crate::Manager).
pub trait AsyncPredicate<'a, R: 'a>: Send + Sync + 'static {
    /// What it returns.
    type Answer: Future<Output = bool> + Send + 'a;

    /// Asks.
    fn ask(&self, resource: &'a mut R) -> Self::Answer;
}

impl<'a, R, F, A> AsyncPredicate<'a, R> for F
where
    R: 'a,
    F: Fn(&'a mut R) -> A + Send + Sync + 'static,
    A: Future<Output = bool> + Send + 'a,
{
    type Answer = A;

    fn ask(&self, resource: &'a mut R) -> A {
        self(resource)
    }
}

pub(crate) fn hook<R: 'static>(predicate: impl for<'a> AsyncPredicate<'a, R>) -> Hook<R> {
    Arc::new(move |resource| Box::pin(predicate.ask(resource)))
}

pub(crate) struct Hooks<R> {
    pub(crate) before_acquire: Option<Hook<R>>,
    pub(crate) before_release: Option<Hook<R>>,
}

impl<R> Default for Hooks<R> {
    fn default() -> Self {
        Self {
            before_acquire: None,
            before_release: None,
        }
    }
}

impl<R> fmt::Debug for Hooks<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("before_acquire", &self.before_acquire.is_some())
            .field("before_release", &self.before_release.is_some())
            .finish()
    }
}
