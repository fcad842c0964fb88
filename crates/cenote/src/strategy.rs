//! The breaker's strategy: what it is told, when it is asked, and what follows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{BreakerState, Failure, Recovery, Verdict};
use crate::manager::Manager;
use crate::observer::BreakerChanged;
use crate::rt;
use crate::shared::{Place, Shared};

/// What a strategy is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Evidence {
    /// A return was accepted; of a probe, or of something that was lent before.
    Accepted {
        probe: bool,
    },
    Failed(Failure),
}

/// When a strategy that panicked is asked again.
const AFTER_PANIC: Duration = Duration::from_secs(1);

impl<M: Manager + 'static> Shared<M> {
    /// By hand, or by a strategy that saw the breaker in the state `seen`.
    pub(crate) fn set_breaker(
        self: &Arc<Self>,
        seen: Option<BreakerState>,
        to: BreakerState,
        place: Place,
    ) {
        let (from, mut orders) = self.ledger_off_trays().set_breaker(seen, to, rt::now());
        self.carry_out(&mut orders, place);
        if from != to && seen.is_none_or(|seen| seen == from) {
            self.observers.tell(|observer| {
                observer.breaker_changed(&BreakerChanged {
                    pool: &self.name,
                    from,
                    to,
                })
            });
        }
    }

    /// Tells the strategy, and does what it says.
    pub(crate) fn report(self: &Arc<Self>, evidence: Evidence, place: Place) {
        if self.strategy.is_some() {
            let state = self.ledger().breaker().state;
            self.report_in(state, evidence, place);
        }
    }

    /// The same, where the state of the breaker is known.
    pub(crate) fn report_in(
        self: &Arc<Self>,
        state: BreakerState,
        evidence: Evidence,
        place: Place,
    ) {
        let Some(strategy) = &self.strategy else {
            return;
        };
        let verdict = catch_unwind(AssertUnwindSafe(|| match evidence {
            Evidence::Accepted { probe } if !probe && state == BreakerState::Recovering => {
                Verdict::Keep
            }
            Evidence::Accepted { .. } => strategy.report_success(state, rt::now().instant()),
            Evidence::Failed(failure) => {
                strategy.report_failure(state, failure, rt::now().instant())
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
        let asked = self.ledger_off_trays().asks_recovery(rt::now());
        let Some(inactive_for) = asked else { return };
        let recovery = self.strategy.as_ref().map(|strategy| {
            let answer = catch_unwind(AssertUnwindSafe(|| strategy.should_recover(inactive_for)));
            answer.unwrap_or(Recovery::After(AFTER_PANIC))
        });
        match recovery {
            None => self.ledger_off_trays().ask_again(None, rt::now()),
            Some(Recovery::After(after)) if !after.is_zero() => {
                self.ledger_off_trays().ask_again(Some(after), rt::now())
            }
            Some(_) => self.set_breaker(
                Some(BreakerState::Inactive),
                BreakerState::Recovering,
                Place::Task,
            ),
        }
    }
}
