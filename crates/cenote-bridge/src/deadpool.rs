//! The bridge for managers of deadpool.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use cenote::Manager;
use deadpool::managed::{self, RecycleError};

use crate::deadpool_object::DeadpoolObject;

/// A manager of deadpool in cenote's pool.
///
/// `create` opens. `recycle` runs between two uses, as in deadpool: a returned object is cleaned by
/// it before it is lent again. `recycle` is also the check of an object that was idle for
/// `check_after_idle`. `detach` is called for each object that leaves the pool.
///
/// ```
/// use cenote::Pool;
/// use cenote_bridge::{Deadpool, DeadpoolObject};
/// use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
///
/// struct Words;
///
/// impl Manager for Words {
///     type Type = String;
///     type Error = std::io::Error;
///
///     async fn create(&self) -> std::io::Result<String> {
///         Ok("hello".to_owned())
///     }
///
///     async fn recycle(&self, word: &mut String, _: &Metrics) -> RecycleResult<std::io::Error> {
///         word.truncate(5);
///         if word.is_empty() { Err(RecycleError::message("no word")) } else { Ok(()) }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::builder(Deadpool::new(Words)).max_size(1).build()?;
/// pool.acquire().await?.push_str(" and more");
///
/// let word = pool.acquire().await?;
/// assert_eq!(**word, *"hello", "it was recycled");
/// assert_eq!(DeadpoolObject::metrics(&word).recycle_count, 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Deadpool<M> {
    manager: Arc<M>,
    between_uses: bool,
}

impl<M: managed::Manager> Deadpool<M> {
    /// Wraps a manager of deadpool.
    pub fn new(manager: M) -> Self {
        Self {
            manager: Arc::new(manager),
            between_uses: true,
        }
    }

    /// Calls `recycle` only where the pool checks, and no longer between two uses. A trip through
    /// the pool costs less then.
    ///
    /// This is for a `recycle` that only asks whether the object is alive. One that also resets the
    /// object must run between two uses.
    pub fn recycle_only_on_check(mut self) -> Self {
        self.between_uses = false;
        self
    }

    /// Returns the manager of deadpool.
    pub fn original(&self) -> &M {
        &self.manager
    }

    async fn recycle(&self, object: &mut DeadpoolObject<M>) -> Result<(), DeadpoolError<M::Error>> {
        let (value, metrics) = object.parts();
        self.manager.recycle(value, metrics).await?;
        object.recycled();
        Ok(())
    }
}

impl<M> Clone for Deadpool<M> {
    fn clone(&self) -> Self {
        Self {
            manager: Arc::clone(&self.manager),
            ..*self
        }
    }
}

/// The error of the manager may be any error, a boxed error or a text.
impl<M> Manager for Deadpool<M>
where
    M: managed::Manager,
    M::Error: Into<Box<dyn Error + Send + Sync>> + fmt::Debug + 'static,
{
    type Resource = DeadpoolObject<M>;
    type Error = DeadpoolError<M::Error>;

    async fn open(&self) -> Result<DeadpoolObject<M>, Self::Error> {
        let value = self.manager.create().await;
        let value = value.map_err(DeadpoolError::Backend)?;
        Ok(DeadpoolObject::new(value, Arc::clone(&self.manager)))
    }

    async fn check(&self, object: &mut DeadpoolObject<M>) -> Result<(), Self::Error> {
        self.recycle(object).await
    }

    fn needs_cleaning(&self, _: &mut DeadpoolObject<M>) -> bool {
        self.between_uses
    }

    async fn clean(&self, object: &mut DeadpoolObject<M>) -> Result<(), Self::Error> {
        self.recycle(object).await
    }
}

/// Why an object of deadpool could not be created or recycled.
///
/// ```
/// use cenote_bridge::DeadpoolError;
///
/// let error: DeadpoolError<std::io::Error> = DeadpoolError::Message("too old".into());
/// let error: Box<dyn std::error::Error + Send + Sync> = error.into();
/// assert_eq!(error.to_string(), "recycling refused: too old");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum DeadpoolError<E> {
    /// The manager's own error, from `create` or from `recycle`.
    Backend(E),
    /// `recycle` refused the object, and said this.
    Message(Cow<'static, str>),
}

impl<E> From<RecycleError<E>> for DeadpoolError<E> {
    fn from(error: RecycleError<E>) -> Self {
        match error {
            RecycleError::Backend(error) => Self::Backend(error),
            RecycleError::Message(text) => Self::Message(text),
        }
    }
}

/// The manager's own error stays as it is, with its text and its causes.
impl<E: Into<Self>> From<DeadpoolError<E>> for Box<dyn Error + Send + Sync> {
    fn from(error: DeadpoolError<E>) -> Self {
        match error {
            DeadpoolError::Backend(error) => error.into(),
            DeadpoolError::Message(text) => format!("recycling refused: {text}").into(),
        }
    }
}
