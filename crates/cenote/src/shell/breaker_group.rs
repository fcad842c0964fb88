//! Pools that share one breaker: its state, its strategy, and its members.
//!
//! The state is kept once here and once in the ledger of each member, so that an acquire asks its
//! own ledger only. A change is decided under the lock of the group and told to every ledger before
//! that lock is released. So all members change in the same order. What follows from a change runs
//! user code (wakers, observers), and is done with no lock held.

use std::sync::{Arc, Weak};

use super::carry_out::Place;
use super::kind::Threads;
use super::shared::{PoolRef, Shared};
use crate::breaker::{BreakerState, Strategy};
use crate::manager::Manager;
use crate::rt::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct BreakerGroup {
    strategy: Mutex<Option<Arc<dyn Strategy>>>,
    members: Mutex<Members>,
}

struct Members {
    state: BreakerState,
    pools: Vec<Weak<dyn Member>>,
}

/// What follows from a change of the state.
type Then = Box<dyn FnOnce()>;

/// A pool of any kind.
trait Member: Send + Sync {
    /// Changes the state in the ledger.
    fn turn(self: Arc<Self>, to: BreakerState) -> Then;

    fn strategy_changed(self: Arc<Self>);
}

impl<M: Manager + 'static> Member for Shared<Threads<M>> {
    fn turn(self: Arc<Self>, to: BreakerState) -> Then {
        // Its own callers and its upkeep do the work that follows: they have the right runtime.
        Box::new(PoolRef::<Threads<M>>(self).turn(None, to, Place::Drop))
    }

    fn strategy_changed(self: Arc<Self>) {
        PoolRef::<Threads<M>>(self).strategy_changed(Place::Drop);
    }
}

impl BreakerGroup {
    pub(crate) fn new(strategy: Option<Arc<dyn Strategy>>) -> Self {
        Self {
            strategy: Mutex::new(strategy),
            members: Mutex::new(Members {
                state: BreakerState::Active,
                pools: Vec::new(),
            }),
        }
    }

    /// A pool joins, and gets the present state.
    pub(crate) fn join<M: Manager + 'static>(&self, pool: &PoolRef<Threads<M>>) {
        let mut members = self.members();
        members.pools.retain(|member| member.strong_count() > 0);
        let member: Arc<dyn Member> = Arc::clone(&pool.0) as _;
        members.pools.push(Arc::downgrade(&member));
        let then = Member::turn(Arc::clone(&pool.0), members.state);
        drop(members);
        then();
    }

    pub(crate) fn state(&self) -> BreakerState {
        self.members().state
    }

    /// Changes the state of all members: by hand, or for a strategy that saw the state `seen`.
    pub(crate) fn set(&self, seen: Option<BreakerState>, to: BreakerState) {
        let mut members = self.members();
        if members.state == to || seen.is_some_and(|seen| seen != members.state) {
            return;
        }
        members.state = to;
        let pools: Vec<_> = members.pools.iter().filter_map(Weak::upgrade).collect();
        let thens: Vec<Then> = pools.into_iter().map(|pool| pool.turn(to)).collect();
        drop(members);
        for then in thens {
            then();
        }
    }

    pub(crate) fn strategy(&self) -> Option<Arc<dyn Strategy>> {
        let strategy = self.strategy.lock();
        strategy.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_strategy(&self, strategy: Option<Arc<dyn Strategy>>) {
        let mut place = self.strategy.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, strategy);
        drop(place);
        drop(before);
        let pools: Vec<_> = self.members().pools.clone();
        for pool in pools.iter().filter_map(Weak::upgrade) {
            pool.strategy_changed();
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(cenote_model)))]
mod tests {
    use crate::Pool;
    use crate::breaker::{ConsecutiveFailures, SharedBreaker};

    #[test]
    fn pools_that_are_gone_are_forgotten_when_another_joins() {
        let breaker = SharedBreaker::new(ConsecutiveFailures::new(1));
        let build = || {
            let pool = Pool::from_fn(async || Ok::<_, &str>(()));
            let pool = pool.shared_breaker(&breaker).build();
            pool.expect("the settings are valid")
        };

        for _ in 0..10 {
            drop(build());
        }
        let _alive = (build(), build());

        assert_eq!(breaker.group.members().pools.len(), 2);
    }
}
