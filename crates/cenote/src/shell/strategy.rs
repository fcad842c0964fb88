//! The breaker's strategy: what it is told, when it is asked, and what follows.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::carry_out::Place;
use super::shared::Shared;
use crate::breaker::{BreakerState, Failed, Recovery, Strategy, Verdict};
use crate::manager::Manager;
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
}

impl StrategyPlace {
    pub(crate) fn new(strategy: Option<Arc<dyn Strategy>>) -> Self {
        Self {
            any: AtomicBool::new(strategy.is_some()),
            strategy: Mutex::new(strategy),
        }
    }

    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn present(&self) -> Option<Arc<dyn Strategy>> {
        if !self.is_some() {
            return None;
        }
        self.lock().clone()
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

impl<M: Manager + 'static> Shared<M> {
    /// Changes the state of the breaker: by hand, or for a strategy that saw it in the state
    /// `seen`.
    pub(crate) fn set_breaker(
        self: &Arc<Self>,
        seen: Option<BreakerState>,
        to: BreakerState,
        place: Place,
    ) {
        let from = self.order(place, |ledger, now, orders| {
            ledger.set_breaker(seen, to, now, orders)
        });
        if from != to && seen.is_none_or(|seen| seen == from) {
            self.observers.breaker_changed(from, to);
        }
    }

    /// Another strategy decides from now on, or none.
    pub(crate) fn set_strategy(self: &Arc<Self>, strategy: Option<Arc<dyn Strategy>>) {
        self.strategy.replace(strategy);
        self.order(Place::here(), |ledger, now, orders| {
            ledger.strategy_changed(now, orders);
        });
    }

    /// Tells the strategy, and follows its verdict.
    #[inline]
    pub(crate) fn report(self: &Arc<Self>, evidence: Evidence<'_>, place: Place) {
        if self.strategy.is_some() {
            let state = self.ledger().breaker().state;
            self.report_in(state, evidence, place);
        }
    }

    /// The same, where the state of the breaker is known.
    pub(crate) fn report_in(
        self: &Arc<Self>,
        state: BreakerState,
        evidence: Evidence<'_>,
        place: Place,
    ) {
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
    pub(crate) fn ask_recovery(self: &Arc<Self>) {
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
