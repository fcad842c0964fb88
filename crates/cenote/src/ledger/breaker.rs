//! The breaker's part of the ledger: its state, and what its changes mean for waiters.

use std::time::Duration;

use super::{Ledger, Orders, Resource, State};
use crate::breaker::BreakerState;
use crate::moment::Moment;

#[derive(Debug)]
pub(crate) struct Breaker<F> {
    pub(crate) state: BreakerState,
    pub(crate) since: Moment,
    /// When the strategy wants to be asked again whether to recover.
    pub(crate) ask_at: Option<Moment>,
    /// The open error that was current when it tripped.
    pub(crate) cause: Option<F>,
}

impl<F> Breaker<F> {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            state: BreakerState::Active,
            since: now,
            ask_at: None,
            cause: None,
        }
    }
}

impl<R: Resource> Ledger<R> {
    pub(crate) fn breaker(&self) -> &Breaker<R::Failure> {
        &self.breaker
    }

    /// Changes the state, unless it is no longer `from`. Returns the one before. Every waiter is told of `Inactive` at once, also one that has
    /// not claimed its grant yet.
    pub(crate) fn set_breaker(
        &mut self,
        from: Option<BreakerState>,
        next: BreakerState,
        now: Moment,
    ) -> (BreakerState, Orders<R>) {
        let mut orders = Orders::default();
        let before = self.breaker.state;
        if before != next && from.is_none_or(|from| from == before) {
            let cause = self.last_failure();
            self.waste.extend(self.breaker.cause.take());
            self.breaker = Breaker {
                state: next,
                since: now,
                ask_at: None,
                cause,
            };
            self.slots.iter_mut().for_each(|slot| slot.probe = false);
            if next == BreakerState::Inactive {
                self.breaker.ask_at = Some(now);
                self.due(now, &mut orders);
                let unclaimed = self.turn_away(Self::tripped, now, &mut orders);
                for slot in unclaimed {
                    self.place(slot, now, &mut orders);
                }
            }
            self.serve(now, &mut orders);
            self.due_next(now, &mut orders);
        }
        (before, self.finish(orders, now))
    }

    /// The strategy wants to be asked again after this long; or never, for there is none.
    pub(crate) fn ask_again(&mut self, after: Option<Duration>, now: Moment) {
        if self.breaker.state == BreakerState::Inactive {
            self.breaker.ask_at = after.and_then(|after| now.checked_add(after));
        }
    }

    /// Returns for how long the breaker has been inactive, if it is time to ask the strategy whether to recover.
    pub(crate) fn asks_recovery(&self, now: Moment) -> Option<Duration> {
        let due = self.breaker.ask_at.is_some_and(|at| at <= now);
        due.then(|| now.saturating_duration_since(self.breaker.since))
    }

    /// How many may be lent beyond what is lent already.
    pub(super) fn allowance(&self) -> usize {
        if self.closed || self.suspended {
            return 0;
        }
        match self.breaker.state {
            BreakerState::Active => usize::MAX,
            BreakerState::Inactive => 0,
            BreakerState::Recovering => {
                let probes = self
                    .slots
                    .iter()
                    .filter(|slot| slot.state == State::Leased && slot.probe);
                self.limits.probes.saturating_sub(probes.count())
            }
        }
    }
}
