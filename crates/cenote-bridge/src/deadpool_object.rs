//! An object of a deadpool manager, as cenote's pool holds it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use deadpool::managed::{Manager, Metrics};

/// Why the value is there: only [`DeadpoolObject::take`] and the destructor take it out, and both
/// consume the object.
const THERE: &str = "the value stays in its object until the object is consumed";

/// An object of a deadpool manager, with the [`Metrics`] that deadpool would keep for it.
///
/// It dereferences to the object itself, so that methods are called on the lease as before. A
/// function that wants a `&mut M::Type` gets `&mut **lease`.
pub struct DeadpoolObject<M: Manager> {
    value: Option<M::Type>,
    metrics: Metrics,
    manager: Arc<M>,
}

impl<M: Manager> DeadpoolObject<M> {
    pub(crate) fn new(value: M::Type, manager: Arc<M>) -> Self {
        Self {
            value: Some(value),
            metrics: Metrics::default(),
            manager,
        }
    }

    /// Returns when the object was created and recycled, and how often.
    pub fn metrics(this: &Self) -> &Metrics {
        &this.metrics
    }

    /// Takes the object out for good, after a call of `detach`, as deadpool's `Object::take` does.
    /// `Lease::detach` takes it out of the pool first:
    ///
    /// ```
    /// use cenote::{Lease, Pool};
    /// use cenote_bridge::{Deadpool, DeadpoolObject};
    /// # use deadpool::managed::{Manager, Metrics, RecycleResult};
    /// # struct Words;
    /// # impl Manager for Words {
    /// #     type Type = String;
    /// #     type Error = std::io::Error;
    /// #     async fn create(&self) -> std::io::Result<String> {
    /// #         Ok("hello".to_owned())
    /// #     }
    /// #     async fn recycle(
    /// #         &self,
    /// #         _: &mut String,
    /// #         _: &Metrics,
    /// #     ) -> RecycleResult<std::io::Error> {
    /// #         Ok(())
    /// #     }
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder(Deadpool::new(Words)).build()?;
    /// let lease = pool.acquire().await?;
    /// let word: String = DeadpoolObject::take(Lease::detach(lease));
    /// assert_eq!((word.as_str(), pool.status().total), ("hello", 0));
    /// # Ok(()) }
    /// ```
    pub fn take(mut this: Self) -> M::Type {
        let mut value = this.value.take().expect(THERE);
        this.manager.detach(&mut value);
        value
    }

    pub(crate) fn parts(&mut self) -> (&mut M::Type, &Metrics) {
        (self.value.as_mut().expect(THERE), &self.metrics)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the metrics of deadpool are on the system's clock"
    )]
    pub(crate) fn recycled(&mut self) {
        self.metrics.recycle_count += 1;
        self.metrics.recycled = Some(Instant::now());
    }
}

impl<M: Manager> Deref for DeadpoolObject<M> {
    type Target = M::Type;

    fn deref(&self) -> &M::Type {
        self.value.as_ref().expect(THERE)
    }
}

impl<M: Manager> DerefMut for DeadpoolObject<M> {
    fn deref_mut(&mut self) -> &mut M::Type {
        self.value.as_mut().expect(THERE)
    }
}

/// An object that leaves the pool is detached, on whichever way it leaves.
impl<M: Manager> Drop for DeadpoolObject<M> {
    fn drop(&mut self) {
        if let Some(value) = &mut self.value {
            self.manager.detach(value);
        }
    }
}

impl<M: Manager<Type: fmt::Debug>> fmt::Debug for DeadpoolObject<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadpoolObject")
            .field("value", &self.value)
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}
