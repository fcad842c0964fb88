//! A manager made of closures, for a pool in five lines.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::builder::Builder;
use crate::hook::{AsyncPredicate, Hook, hook};
use crate::manager::{LeaseEnd, Manager};
use crate::pool::Pool;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Factory<R> = Box<dyn Fn() -> Boxed<Result<R, ClosureError>> + Send + Sync>;
type Destructor<R> = Box<dyn Fn(R) -> Boxed<()> + Send + Sync>;
type Look<R> = Box<dyn Fn(&mut R) -> bool + Send + Sync>;

/// The manager of a pool that was made by [`Pool::from_fn`].
///
/// A type that holds such a pool names it as `Pool<Closures<R>>`:
///
/// ```
/// use cenote::{Closures, Pool};
///
/// struct App {
///     buffers: Pool<Closures<Vec<u8>>>,
/// }
///
/// let buffers = Pool::from_fn(async || Ok::<_, &str>(Vec::new())).build()?;
/// assert_eq!(App { buffers }.buffers.acquire_blocking()?.len(), 0);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Closures<R> {
    factory: Factory<R>,
    destructor: Option<Destructor<R>>,
    check: Option<Hook<R>>,
    is_broken: Option<Look<R>>,
    needs_cleaning: Option<Look<R>>,
    clean: Option<Look<R>>,
}

/// The error of a closure: any error, or only a text.
///
/// ```
/// use cenote::ClosureError;
///
/// let error: ClosureError = "no route to host".into();
/// assert_eq!(error.to_string(), "no route to host");
/// ```
pub type ClosureError = Box<dyn Error + Send + Sync>;

impl<R: Send + 'static> Pool<Closures<R>> {
    /// Begins to build a pool of the values that `factory` makes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Pool;
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(vec![0u8; 4096]))
    ///     .max_size(2)
    ///     .build()?;
    /// assert_eq!(pool.acquire().await?.len(), 4096);
    /// # Ok(()) }
    /// ```
    ///
    /// An async closure that captures state is not accepted, because its futures would borrow from
    /// the closure. A plain closure that gives each future a clone of its own is:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Conn(String);
    /// # impl Conn {
    /// #     async fn connect(address: &str) -> Result<Self, &'static str> {
    /// #         Ok(Self(address.to_owned()))
    /// #     }
    /// # }
    /// use cenote::Pool;
    ///
    /// let address = String::from("localhost:5432");
    /// let pool = Pool::from_fn(move || {
    ///     let address = address.clone();
    ///     async move { Conn::connect(&address).await }
    /// })
    /// .build()?;
    /// assert_eq!(pool.acquire().await?.0, "localhost:5432");
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// The futures of `factory` run in tasks of the pool, as [`Manager::open`] does.
    pub fn from_fn<F, A, E>(factory: F) -> Builder<Closures<R>>
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, E>> + Send + 'static,
        E: Into<ClosureError>,
    {
        let factory: Factory<R> = Box::new(move || {
            let opening = factory();
            Box::pin(async move { opening.await.map_err(Into::into) })
        });
        Builder::new(Closures {
            factory,
            destructor: None,
            check: None,
            is_broken: None,
            needs_cleaning: None,
            clean: None,
        })
    }
}

impl<R: Send + 'static> Builder<Closures<R>> {
    /// Sets how a resource is closed. Default: it is dropped. Limited by `close_timeout`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    /// use cenote::Pool;
    ///
    /// let farewells = Arc::new(Mutex::new(Vec::new()));
    /// let said = Arc::clone(&farewells);
    /// let pool = Pool::from_fn(async || Ok::<_, &str>("session 1"))
    ///     .close_with(move |session| {
    ///         let said = Arc::clone(&said);
    ///         async move { said.lock().unwrap().push(session) }
    ///     })
    ///     .build()?;
    /// drop(pool.acquire().await?);
    /// assert!(pool.close_within(Duration::from_secs(1)).await.is_empty());
    /// assert_eq!(*farewells.lock().unwrap(), ["session 1"]);
    /// # Ok(()) }
    /// ```
    pub fn close_with<F, A>(mut self, destructor: F) -> Self
    where
        F: Fn(R) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        self.manager.destructor = Some(Box::new(move |resource| Box::pin(destructor(resource))));
        self
    }

    /// Sets how to find out whether a resource is alive. Default: it is. A resource for which
    /// `check` returns false is closed. Limited by `check_timeout`; asked at the same times as
    /// [`Manager::check`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use cenote::{CloseReason, Pool};
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(vec![0u8; 16]))
    ///     .check_with(async |buffer: &mut Vec<u8>| buffer.len() == 16)
    ///     .check_after_idle(Duration::ZERO)
    ///     .build()?;
    /// pool.acquire().await?.truncate(3);
    /// assert_eq!(pool.acquire().await?.len(), 16, "the other one failed its check");
    /// assert_eq!(pool.status().closes.by(CloseReason::FailedCheck), 1);
    /// # Ok(()) }
    /// ```
    pub fn check_with(mut self, check: impl for<'a> AsyncPredicate<'a, R>) -> Self {
        self.manager.check = Some(hook(check));
        self
    }

    /// Sets how to see that a resource is unusable. Default: it never is. Asked at the same times
    /// as [`Manager::is_broken`], on the thread of the caller. So it must be cheap, and do no I/O.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::{CloseReason, Pool};
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(vec![0u8; 16]))
    ///     .is_broken_with(|buffer| buffer.len() != 16)
    ///     .build()?;
    /// pool.acquire().await?.truncate(3);
    /// assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    /// # Ok(()) }
    /// ```
    pub fn is_broken_with(
        mut self,
        is_broken: impl Fn(&mut R) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.manager.is_broken = Some(Box::new(is_broken));
        self
    }

    /// Sets how to see that a returned resource must be cleaned. Default: it must, if there is a
    /// [`clean_with`](Builder::clean_with). Asked as [`is_broken_with`](Builder::is_broken_with)
    /// is. A resource that needs cleaning in a pool without a `clean_with` is closed.
    pub fn needs_cleaning_with(
        mut self,
        needs_cleaning: impl Fn(&mut R) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.manager.needs_cleaning = Some(Box::new(needs_cleaning));
        self
    }

    /// Sets how a returned resource is cleaned, on the thread that returns it. So it must be cheap,
    /// and do no I/O. A resource for which `clean` returns false twice is closed. What must be
    /// awaited belongs into [`before_release`](Builder::before_release), which needs a task for
    /// each return.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Pool;
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new()))
    ///     .needs_cleaning_with(|text| !text.is_empty())
    ///     .clean_with(|text| {
    ///         text.clear();
    ///         text.capacity() < 1024
    ///     })
    ///     .build()?;
    /// pool.acquire().await?.push_str("left over");
    /// assert_eq!(pool.status().idle, 1, "it was cleaned at once, without a task");
    /// assert_eq!(*pool.acquire().await?, "");
    /// # Ok(()) }
    /// ```
    pub fn clean_with(mut self, clean: impl Fn(&mut R) -> bool + Send + Sync + 'static) -> Self {
        self.manager.clean = Some(Box::new(clean));
        self
    }
}

impl<R: Send> Manager for Closures<R> {
    type Resource = R;
    type Error = ClosureError;

    async fn open(&self) -> Result<R, ClosureError> {
        (self.factory)().await
    }

    async fn check(&self, resource: &mut R) -> Result<(), ClosureError> {
        match &self.check {
            Some(check) if !check(resource).await => Err("the check returned false".into()),
            _ => Ok(()),
        }
    }

    fn is_broken(&self, resource: &mut R, _: LeaseEnd) -> bool {
        self.is_broken.as_ref().is_some_and(|look| look(resource))
    }

    /// Cleans at once. Only a resource that cannot be cleaned at once is left to `clean`.
    fn needs_cleaning(&self, resource: &mut R) -> bool {
        let needs = match &self.needs_cleaning {
            Some(look) => look(resource),
            None => self.clean.is_some(),
        };
        needs && !self.clean.as_ref().is_some_and(|clean| clean(resource))
    }

    async fn clean(&self, resource: &mut R) -> Result<(), ClosureError> {
        match &self.clean {
            Some(clean) if clean(resource) => Ok(()),
            Some(_) => Err("the clean returned false".into()),
            None => Err("it needs cleaning, and there is no `clean_with`".into()),
        }
    }

    async fn close(&self, resource: R) -> Result<(), ClosureError> {
        match &self.destructor {
            Some(destructor) => destructor(resource).await,
            None => drop(resource),
        }
        Ok(())
    }
}

impl<R> fmt::Debug for Closures<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closures").finish_non_exhaustive()
    }
}
