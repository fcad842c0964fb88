//! A manager made of closures, for a pool in five lines.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::builder::Builder;
use crate::hooks::{AsyncPredicate, Hook, hook};
use crate::manager::Manager;
use crate::pool::Pool;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Factory<R> = Box<dyn Fn() -> Boxed<Result<R, ClosureError>> + Send + Sync>;
type Destructor<R> = Box<dyn Fn(R) -> Boxed<()> + Send + Sync>;

/// The manager of a pool that was made by [`Pool::from_fn`].
pub struct Closures<R> {
    factory: Factory<R>,
    destructor: Option<Destructor<R>>,
    healthcheck: Option<Hook<R>>,
}

/// Why a closure failed. Its cause is in [`source`](Error::source), if it is an error and not only a text.
#[derive(Debug)]
pub struct ClosureError(Box<dyn Error + Send + Sync>);

impl ClosureError {
    /// What the closure returned.
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }

    /// What the closure returned.
    pub fn get(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for ClosureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ClosureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl<R: Send + 'static> Pool<Closures<R>> {
    /// A pool of what `factory` makes: any `Send` value.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Pool;
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(vec![0u8; 4096]))
    ///     .healthcheck(async |buffer: &mut Vec<u8>| buffer.len() == 4096)
    ///     .max_size(2)
    ///     .build()?;
    /// assert_eq!(pool.acquire().await?.len(), 4096);
    /// # Ok(()) }
    /// ```
    pub fn from_fn<F, A, E>(factory: F) -> Builder<Closures<R>>
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let factory: Factory<R> = Box::new(move || {
            let opening = factory();
            Box::pin(async move { opening.await.map_err(|error| ClosureError(error.into())) })
        });
        Builder::new(Closures {
            factory,
            destructor: None,
            healthcheck: None,
        })
    }
}

impl<R: Send + 'static> Builder<Closures<R>> {
    /// How a resource is closed. Default: it is dropped.
    pub fn destructor<F, A>(mut self, destructor: F) -> Self
    where
        F: Fn(R) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        self.manager.destructor = Some(Box::new(move |resource| Box::pin(destructor(resource))));
        self
    }

    /// Whether a resource is alive. Default: it is.
    pub fn healthcheck(mut self, healthcheck: impl for<'a> AsyncPredicate<'a, R>) -> Self {
        self.manager.healthcheck = Some(hook(healthcheck));
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
        match &self.healthcheck {
            Some(healthcheck) if !healthcheck(resource).await => {
                Err(ClosureError("the healthcheck said no".into()))
            }
            _ => Ok(()),
        }
    }

    async fn close(&self, resource: R) {
        match &self.destructor {
            Some(destructor) => destructor(resource).await,
            None => drop(resource),
        }
    }
}

impl<R> fmt::Debug for Closures<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closures")
            .field("destructor", &self.destructor.is_some())
            .field("healthcheck", &self.healthcheck.is_some())
            .finish_non_exhaustive()
    }
}
