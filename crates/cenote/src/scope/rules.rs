//! The rules of a scope: what it asks of the binds in it.

use std::sync::Arc;
use std::time::Instant;

use super::Scope;
use crate::time::Moment;

#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// The first bind of a pool pins its lease.
    pub(super) hold: bool,
    pub(super) one_lease: bool,
    pub(super) deadline: Option<Moment>,
    pub(super) label: Option<Arc<str>>,
}

impl Scope {
    /// Holds every resource from its first use until the scope ends, as a request-bound connection
    /// does: the first bind of a pool pins its lease, also in a scope inside this one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::scope::Scope;
    ///
    /// Scope::new()
    ///     .hold()
    ///     .run_and_end(async {
    ///         drop(pool.bind().await?);
    ///         assert_eq!(pool.status().in_use, 1, "it rests in the scope");
    ///         drop(pool.bind().await?);
    ///         assert_eq!(pool.status().acquired, 1, "it was the same one");
    ///         Ok::<_, cenote::scope::BindError<_>>(())
    ///     })
    ///     .await?;
    /// assert_eq!(pool.status().idle, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn hold(self) -> Self {
        self.lock().rules.hold = true;
        self
    }

    /// Allows one lease of each pool at a time. A second bind waits until the first one ends,
    /// within its deadline, and then fails with [`BindError::InUse`](super::BindError::InUse),
    /// which names the line of the first. So the futures of this scope cannot hold one lease and
    /// wait for another, which is how tasks block each other for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::time::Duration;
    /// use cenote::scope::{BindError, Scope};
    ///
    /// Scope::new()
    ///     .one_lease()
    ///     .run_and_end(async {
    ///         let first = pool.bind().await?;
    ///         let second = pool.bind_within(Duration::from_millis(5)).await;
    ///         assert!(matches!(second, Err(BindError::InUse { .. })));
    ///         drop(first);
    ///         pool.bind().await.map(drop)
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn one_lease(self) -> Self {
        self.lock().rules.one_lease = true;
        self
    }

    /// Ends every bind of this scope, and of scopes inside it, by `deadline`. Limits of the pool or
    /// of the call that end earlier stay in force.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// use std::time::{Duration, Instant};
    /// use cenote::scope::Scope;
    ///
    /// let _held = pool.acquire().await?;
    /// let deadline = Instant::now() + Duration::from_millis(5);
    /// Scope::new()
    ///     .deadline(deadline)
    ///     .run_and_end(async { assert!(pool.bind().await.is_err()) })
    ///     .await;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn deadline(self, deadline: Instant) -> Self {
        self.lock().rules.deadline = Some(Moment::of(deadline));
        self
    }

    /// Labels every lease that is bound in this scope, or in a scope inside it that has no label.
    /// [`Lease::label`](crate::Lease::label) replaces it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::scope::Scope;
    ///
    /// let scope = Scope::new().labelled("GET /rooms");
    /// assert_eq!(scope.label().as_deref(), Some("GET /rooms"));
    /// let _bound = scope.run(pool.bind()).await?;
    /// assert_eq!(pool.leases()[0].label.as_deref(), Some("GET /rooms"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn labelled(self, label: impl Into<Arc<str>>) -> Self {
        self.lock().rules.label = Some(label.into());
        self
    }

    /// Returns the label of this scope, or of the next one around it that has one.
    pub fn label(&self) -> Option<Arc<str>> {
        self.rules().label
    }

    /// The rules of this scope. All but `one_lease` count in the scopes inside it, too.
    pub(super) fn rules(&self) -> Rules {
        let (mut rules, outer) = {
            let seats = self.lock();
            (seats.rules.clone(), seats.outer.clone())
        };
        if let Some(outer) = outer.map(|scope| scope.rules()) {
            rules.hold |= outer.hold;
            rules.deadline = rules.deadline.into_iter().chain(outer.deadline).min();
            rules.label = rules.label.or(outer.label);
        }
        rules
    }
}
