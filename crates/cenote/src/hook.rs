//! Hooks: async functions that decide whether a resource is lent, or goes back to idle.
//!
//! [`Builder::before_acquire`], [`Builder::before_release`] and [`Builder::check_with`] take any
//! [`AsyncPredicate`]. You need this module if yours holds state: see [`with_state`].
//!
//! [`Builder::before_acquire`]: crate::Builder::before_acquire
//! [`Builder::before_release`]: crate::Builder::before_release
//! [`Builder::check_with`]: crate::Builder::check_with

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A hook, with its type erased.
pub(crate) type Hook<R> = Arc<dyn for<'a> Fn(&'a mut R) -> Answer<'a> + Send + Sync>;

pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// An async function that is asked about a resource: `async fn(&mut R) -> bool`.
///
/// It is implemented for async functions, for async closures that capture nothing, and for
/// functions that return a boxed future. There is no need to implement it by hand. An async closure
/// that captures state is not accepted, because its future would borrow from the closure. Such a
/// hook is written with [`with_state`], or as a plain closure that returns a boxed future:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::pin::Pin;
/// use cenote::Pool;
///
/// type Answer<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
///
/// // The return type tells the compiler that the future may borrow the resource.
/// fn shorter_than(limit: usize) -> impl Fn(&mut String) -> Answer<'_> {
///     move |text| Box::pin(async move { text.len() < limit })
/// }
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new()))
///     .check_with(async |text: &mut String| text.is_ascii()) // captures nothing
///     .before_acquire(shorter_than(3)) // has captured the limit
///     .build()?;
/// pool.acquire().await?.push_str("short");
/// assert_eq!(*pool.acquire().await?, "", "the longer text was closed");
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// The pool drops the future when the hook takes longer than its time limit, and then closes the
/// resource. A runtime that shuts down drops both.
pub trait AsyncPredicate<'a, R: 'a>: Send + Sync + 'static {
    /// The future of the answer.
    type Answer: Future<Output = bool> + Send + 'a;

    /// Asks about a resource.
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

/// Makes a hook of a state and an async function, which gets a clone of the state in each call.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use cenote::{Pool, hook};
///
/// let asked = Arc::new(AtomicU32::new(0));
/// let count = async |asked: Arc<AtomicU32>, text: &mut String| {
///     asked.fetch_add(1, Ordering::Relaxed);
///     text.is_empty()
/// };
/// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new()))
///     .before_acquire(hook::with_state(Arc::clone(&asked), count))
///     .build()?;
/// drop(pool.acquire().await?); // a fresh resource: the hook is not asked
/// drop(pool.acquire().await?);
/// assert_eq!(asked.load(Ordering::Relaxed), 1);
/// # Ok(()) }
/// ```
pub fn with_state<S, F>(state: S, ask: F) -> WithState<S, F> {
    WithState { state, ask }
}

/// A hook that holds state, made by [`with_state`].
#[derive(Clone, Debug)]
pub struct WithState<S, F> {
    state: S,
    ask: F,
}

impl<'a, R, S, F, A> AsyncPredicate<'a, R> for WithState<S, F>
where
    R: 'a,
    S: Clone + Send + Sync + 'static,
    F: Fn(S, &'a mut R) -> A + Send + Sync + 'static,
    A: Future<Output = bool> + Send + 'a,
{
    type Answer = A;

    fn ask(&self, resource: &'a mut R) -> A {
        (self.ask)(self.state.clone(), resource)
    }
}

pub(crate) fn hook<R: 'static>(predicate: impl for<'a> AsyncPredicate<'a, R>) -> Hook<R> {
    Arc::new(move |resource| Box::pin(predicate.ask(resource)))
}

pub(crate) struct Hooks<H> {
    pub(crate) before_acquire: Option<H>,
    pub(crate) before_release: Option<H>,
}
