//! One circuit breaker for several pools.

use std::fmt;
use std::sync::Arc;

use crate::breaker::{BreakerState, Strategy};
use crate::shell::breaker_group::BreakerGroup;

/// One circuit breaker for several pools of one server, so that a failure in one pool spares the
/// callers of the others. Give it to each of them by
/// [`Builder::shared_breaker`](crate::Builder::shared_breaker).
///
/// The strategy is told of the returns and failures of all the pools, and every change of the state
/// is a change for all of them, whichever pool or strategy made it. While the breaker recovers,
/// each pool has probes of its own, and the first verdict of the strategy counts for all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::breaker::{BreakerState, ConsecutiveFailures, SharedBreaker};
/// use cenote::{AcquireError, Pool};
///
/// let breaker = SharedBreaker::new(ConsecutiveFailures::new(1));
/// let readers = Pool::from_fn(async || Err::<(), _>("connection refused"));
/// let readers = readers.shared_breaker(&breaker).build()?;
/// let writers = Pool::from_fn(async || Ok::<_, &str>(()));
/// let writers = writers.shared_breaker(&breaker).build()?;
///
/// assert!(readers.acquire().await.is_err());
/// assert!(matches!(writers.acquire().await, Err(AcquireError::Unavailable(_))));
///
/// breaker.reset();
/// assert!(writers.acquire().await.is_ok());
/// assert_eq!(readers.breaker().state(), BreakerState::Active);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedBreaker {
    pub(crate) group: Arc<BreakerGroup>,
}

impl SharedBreaker {
    /// Makes a breaker that is active, and that `strategy` controls.
    pub fn new(strategy: impl Strategy) -> Self {
        let group = Arc::new(BreakerGroup::new(Some(Arc::new(strategy))));
        Self { group }
    }

    /// Returns the present state.
    pub fn state(&self) -> BreakerState {
        self.group.state()
    }

    /// Makes the breaker inactive: all its pools stop lending.
    pub fn trip(&self) {
        self.group.set(None, BreakerState::Inactive);
    }

    /// Makes the breaker active: all its pools lend.
    pub fn reset(&self) {
        self.group.set(None, BreakerState::Active);
    }

    /// Lets the breaker recover: each of its pools lends probes until the strategy decides.
    pub fn probe(&self) {
        self.group.set(None, BreakerState::Recovering);
    }
}

impl fmt::Debug for SharedBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBreaker")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
