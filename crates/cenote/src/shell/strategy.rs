//! The breaker's strategy: what it is told, when it is asked, and what follows.

use std::error::Error;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::breaker_group::BreakerGroup;
use super::carry_out::Place;
use super::kind::Kind;
use super::shared::PoolRef;
use crate::breaker::{BreakerState, Failed, Recovery, Strategy, Verdict};
use crate::ledger::Orders;
use crate::rt::sync::{AtomicBool, Ordering, PoisonError};
use crate::time;

/// An observation that the strategy is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Evidence<'a> {
    /// A return was accepted; of a probe, or of something that was lent before.
    Accepted {
        probe: bool,
    },
    Failed(Failed<'a>),
}

/// The strategy of a pool, if it has one. It may be replaced while the pool lives.
pub(crate) struct StrategyPlace {
    /// Every return reads it, without the lock.
    any: AtomicBool,
    strategy: Mutex<Option<Arc<dyn Strategy>>>,
    /// The strategy is that of the group, for a pool that shares its breaker.
    group: Option<Arc<BreakerGroup>>,
}

impl StrategyPlace {
    pub(crate) fn new(
        strategy: Option<Arc<dyn Strategy>>,
        group: Option<Arc<BreakerGroup>>,
    ) -> Self {
        Self {
            any: AtomicBool::new(match &group {
                Some(group) => group.strategy().is_some(),
                None => strategy.is_some(),
            }),
            strategy: Mutex::new(strategy),
            group,
        }
    }

    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn present(&self) -> Option<Arc<dyn Strategy>> {
        match &self.group {
            _ if !self.is_some() => None,
            Some(group) => group.strategy(),
            None => self.lock().clone(),
        }
    }

    fn replace(&self, strategy: Option<Arc<dyn Strategy>>) {
        let mut place = self.lock();
        self.any.store(strategy.is_some(), Ordering::Relaxed);
        let before = mem::replace(&mut *place, strategy);
        drop(place);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Strategy>>> {
        self.strategy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a strategy that panicked is asked again.
const AFTER_PANIC: Duration = Duration::from_secs(1);

impl<K: Kind> PoolRef<K> {
    /// Changes the state of the breaker: by hand, or for a strategy that saw it in the state
    /// `seen`.
    pub(crate) fn set_breaker(&self, seen: Option<BreakerState>, to: BreakerState, place: Place) {
        match &self.strategy.group {
            None => self.turn(seen, to, place)(),
            Some(group) => group.set(seen, to),
        }
    }

    /// Changes the state of the breaker in the ledger. Returns what must be done with no lock held.
    pub(crate) fn turn(
        &self,
        seen: Option<BreakerState>,
        to: BreakerState,
        place: Place,
    ) -> impl FnOnce() + use<K> {
        let mut orders = Orders::default();
        let mut ledger = self.ledger_off_trays();
        let from = ledger.set_breaker(seen, to, time::now(), &mut orders);
        let cause = ledger.breaker().cause.clone();
        drop(ledger);
        let shared = self.clone();
        move || {
            shared.carry_out(orders, place);
            if from != to && seen.is_none_or(|seen| seen == from) {
                let cause = cause.as_ref().map(|cause| cause as &dyn Error);
                shared.observers.breaker_changed(from, to, cause);
            }
        }
    }

    /// Another strategy decides from now on, or none.
    pub(crate) fn set_strategy(&self, strategy: Option<Arc<dyn Strategy>>) {
        match &self.strategy.group {
            None => {
                self.strategy.replace(strategy);
                self.strategy_changed(K::here());
            }
            Some(group) => group.set_strategy(strategy),
        }
    }

    pub(crate) fn strategy_changed(&self, place: Place) {
        if let Some(group) = &self.strategy.group {
            let any = group.strategy().is_some();
            self.strategy.any.store(any, Ordering::Relaxed);
        }
        self.order(place, |ledger, now, orders| {
            ledger.strategy_changed(now, orders);
        });
    }

    /// Tells the strategy, and follows its verdict.
    #[inline]
    pub(crate) fn report(&self, evidence: Evidence<'_>, place: Place) {
        if self.strategy.is_some() {
            let state = self.ledger().breaker().state;
            self.report_in(state, evidence, place);
        }
    }

    /// The same, where the state of the breaker is known.
    pub(crate) fn report_in(&self, state: BreakerState, evidence: Evidence<'_>, place: Place) {
        let Some(strategy) = self.strategy.present() else {
            return;
        };
        let verdict = catch_unwind(AssertUnwindSafe(|| match evidence {
            Evidence::Accepted { probe } if !probe && state == BreakerState::Recovering => {
                Verdict::Keep
            }
            Evidence::Accepted { .. } => strategy.report_success(state, time::now().instant()),
            Evidence::Failed(failed) => {
                strategy.report_failure(state, &failed, time::now().instant())
            }
        }));
        match verdict.unwrap_or(Verdict::Keep) {
            Verdict::Keep => {}
            Verdict::Activate => self.set_breaker(Some(state), BreakerState::Active, place),
            Verdict::Deactivate => self.set_breaker(Some(state), BreakerState::Inactive, place),
        }
    }

    /// Asks the strategy whether to recover, if it is time to.
    pub(crate) fn ask_recovery(&self) {
        let asked = self.ledger_off_trays().asks_recovery(time::now());
        let Some(inactive_for) = asked else { return };
        let recovery = self.strategy.present().map(|strategy| {
            let answer = catch_unwind(AssertUnwindSafe(|| strategy.should_recover(inactive_for)));
            answer.unwrap_or(Recovery::After(AFTER_PANIC))
        });
        match recovery {
            None => self.ledger_off_trays().ask_again(None, time::now()),
            Some(Recovery::After(after)) if !after.is_zero() => {
                self.ledger_off_trays().ask_again(Some(after), time::now())
            }
            Some(_) => self.set_breaker(
                Some(BreakerState::Inactive),
                BreakerState::Recovering,
                Place::Task,
            ),
        }
    }
}
