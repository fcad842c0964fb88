//! A manager made of closures that stay on their thread.

use std::fmt;
use std::rc::Rc;

use super::local_builder::{LocalBuilder, local_hook};
use super::local_pool::LocalPool;
use super::one_thread::{LocalFuture, LocalHook};
use crate::closures::ClosureError;
use crate::local_manager::LocalManager;
use crate::manager::LeaseEnd;

type Look<R> = Box<dyn Fn(&mut R) -> bool>;
type Factory<R> = Box<dyn Fn() -> LocalFuture<'static, Result<R, ClosureError>>>;
type Destructor<R> = Box<dyn Fn(R) -> LocalFuture<'static, ()>>;

/// The manager of [`LocalPool::from_fn`].
pub struct LocalClosures<R> {
    factory: Factory<R>,
    destructor: Option<Destructor<R>>,
    check: Option<LocalHook<R>>,
    is_broken: Option<Look<R>>,
    clean: Option<Look<R>>,
}

impl<R: 'static> LocalPool<LocalClosures<R>> {
    /// Begins to build a pool of the resources that `factory` opens. Nothing has to be `Send`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::task::LocalSet::new().run_until(async {
    /// use std::cell::RefCell;
    /// use std::rc::Rc;
    /// use cenote::local::LocalPool;
    ///
    /// let opened = Rc::new(RefCell::new(Vec::new()));
    /// let log = Rc::clone(&opened);
    /// let pool = LocalPool::from_fn(async move || {
    ///     log.borrow_mut().push("opened");
    ///     Ok::<_, &str>(Rc::clone(&log))
    /// });
    /// let pool = pool.build()?;
    /// drop(pool.acquire().await?);
    /// assert_eq!(*opened.borrow(), ["opened"]);
    /// # Ok(()) }).await }
    /// ```
    pub fn from_fn<E: Into<ClosureError>>(
        factory: impl AsyncFn() -> Result<R, E> + 'static,
    ) -> LocalBuilder<LocalClosures<R>> {
        let factory = Rc::new(factory);
        LocalBuilder::new(LocalClosures {
            factory: Box::new(move || {
                let factory = Rc::clone(&factory);
                Box::pin(async move { factory().await.map_err(Into::into) })
            }),
            destructor: None,
            check: None,
            is_broken: None,
            clean: None,
        })
    }
}

impl<R: 'static> LocalBuilder<LocalClosures<R>> {
    /// Closes resources by `destructor`. By default they are dropped.
    pub fn close_with(mut self, destructor: impl AsyncFn(R) + 'static) -> Self {
        let destructor = Rc::new(destructor);
        self.manager.destructor = Some(Box::new(move |resource| {
            let destructor = Rc::clone(&destructor);
            Box::pin(async move { destructor(resource).await })
        }));
        self
    }

    /// Finds out by `check` whether a resource is alive. By default every one is.
    pub fn check_with(mut self, check: impl AsyncFn(&mut R) -> bool + 'static) -> Self {
        self.manager.check = Some(local_hook(check));
        self
    }

    /// Finds out by `is_broken`, at every return and before every use, whether a resource is known
    /// to be unusable.
    pub fn is_broken_with(mut self, is_broken: impl Fn(&mut R) -> bool + 'static) -> Self {
        self.manager.is_broken = Some(Box::new(is_broken));
        self
    }

    /// Cleans every resource that comes back, at once. If `clean` returns false, it is closed.
    pub fn clean_with(mut self, clean: impl Fn(&mut R) -> bool + 'static) -> Self {
        self.manager.clean = Some(Box::new(clean));
        self
    }
}

impl<R> LocalManager for LocalClosures<R> {
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

    /// Cleans it here, and asks for a task only if that has failed.
    fn needs_cleaning(&self, resource: &mut R) -> bool {
        self.clean.as_ref().is_some_and(|clean| !clean(resource))
    }

    async fn clean(&self, _: &mut R) -> Result<(), ClosureError> {
        Err("the clean returned false".into())
    }

    async fn close(&self, resource: R) -> Result<(), ClosureError> {
        match &self.destructor {
            Some(destructor) => destructor(resource).await,
            None => drop(resource),
        }
        Ok(())
    }
}

impl<R> fmt::Debug for LocalClosures<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalClosures").finish_non_exhaustive()
    }
}
