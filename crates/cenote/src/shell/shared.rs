//! The parts that all handles, leases and tasks of one pool share, and the ways to the ledger.

use std::sync::Arc;
use std::time::Duration;

use super::carry_out::Place;
use super::pooled::Pooled;
use super::severers::Severers;
use super::strategy::StrategyPlace;
use super::upkeep_task::Upkeep;
use crate::config::Limits;
use crate::hook::Hooks;
use crate::ledger::{Ask, Ledger, Orders, Rest, TrayNo};
use crate::log::Log;
use crate::manager::Manager;
use crate::observers::Observers;
use crate::pool::Pool;
use crate::registry;
use crate::rt::sync::{AtomicUsize, CachePadded, Mutex, MutexGuard, PoisonError};
use crate::status::Leftover;
use crate::time::alarm::{self, Alarming};
use crate::time::{self, Clock, Moment};
use crate::tray::Trays;

pub(crate) type PoolLedger<M> = Ledger<Box<Pooled<M>>>;
pub(crate) type PoolOrders<M> = Orders<Box<Pooled<M>>>;
pub(crate) type PoolRest<M> = Rest<Box<Pooled<M>>>;

pub(crate) struct Shared<M: Manager + 'static> {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) manager: M,
    pub(crate) hooks: Hooks<M::Resource>,
    pub(crate) observers: Observers,
    pub(crate) strategy: StrategyPlace,
    pub(crate) severers: Severers,
    /// Every resource that comes back needs work: a check, or a hook.
    pub(crate) works_on_return: bool,
    pub(crate) trays: Trays<Box<Pooled<M>>>,
    pub(crate) clock: Clock,
    pub(crate) ledger: CachePadded<Mutex<PoolLedger<M>>>,
    pub(crate) alarm: Alarming,
    pub(crate) upkeep: Arc<Upkeep<M>>,
    /// How many `Pool` handles there are. The pool closes with the last one; leases may outlive it.
    pub(crate) handles: AtomicUsize,
    /// Its number in the registry.
    pub(crate) number: u64,
    /// The part that is kept apart.
    pub(crate) annex: Option<Pool<M>>,
}

impl<M: Manager + 'static> Shared<M> {
    /// Locks the ledger. Make one call and release it: no user code runs under this lock. So only a
    /// bug of ours could poison it, and then the ledger is better than none.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, PoolLedger<M>> {
        self.ledger.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the ledger, with no slot on a tray: for decisions that depend on all slots.
    pub(crate) fn ledger_off_trays(&self) -> MutexGuard<'_, PoolLedger<M>> {
        let mut ledger = self.ledger();
        self.clear_trays(&mut ledger);
        ledger
    }

    /// Locks the ledger for a caller that asks for a resource.
    #[inline]
    pub(crate) fn ledger_for_request(
        &self,
        ask: Ask,
        now: Moment,
    ) -> MutexGuard<'_, PoolLedger<M>> {
        let mut ledger = self.ledger();
        // No slot is put on a tray while there is no upkeep task. A task that ends clears them.
        ledger.note_upkeep(self.upkeep.is_running());
        if ledger.needs_trays(ask, now) {
            self.clear_trays(&mut ledger);
        }
        ledger
    }

    fn clear_trays(&self, ledger: &mut PoolLedger<M>) {
        for tray in ledger.trays() {
            if ledger.is_tray_taken(tray) {
                self.take_off(ledger, tray);
            }
        }
    }

    /// Takes a slot off its tray. Under the ledger's lock, so that a slot is always either on its
    /// tray or in the ledger.
    pub(crate) fn take_off(&self, ledger: &mut PoolLedger<M>, tray: TrayNo) {
        let off = self.trays.close(tray);
        let mut off = off.expect("bug: a tray that is taken is open");
        if let Some(pooled) = &mut off.resource {
            // A pool to which its own idle resources refer would never end. This is not the last
            // reference, because the caller has one.
            pooled.unbind();
        }
        ledger.taken_off(tray, off);
    }

    /// Makes one call to the ledger, and carries out its orders after the lock is released.
    pub(crate) fn order<T>(
        self: &Arc<Self>,
        place: Place,
        call: impl FnOnce(&mut PoolLedger<M>, Moment, &mut PoolOrders<M>) -> T,
    ) -> T {
        let now = time::now();
        let mut orders = Orders::default();
        let answer = call(&mut self.ledger_off_trays(), now, &mut orders);
        self.carry_out(orders, place);
        answer
    }

    /// Closes the pool: every waiter is told, and idle resources are closed.
    pub(crate) fn close(self: &Arc<Self>, place: Place) {
        let (was_open, in_use) = self.order(place, |ledger, now, orders| {
            (ledger.close(now, orders), ledger.status(now).in_use)
        });
        if was_open {
            self.observers.pool_closed(in_use);
        }
        if let Some(annex) = &self.annex {
            annex.shared.close(place);
        }
    }

    /// Logs the end of a pool that was waited for.
    pub(crate) fn log_end(&self, left: &Leftover, took: Duration) {
        if Log::is_on() {
            self.observers
                .write(|log| log.ended(&self.name, left, took));
        }
    }

    /// Returns whether an observer or a strategy is told of every return.
    pub(crate) fn is_watched(&self) -> bool {
        self.observers.any() || self.strategy.is_some()
    }

    /// Returns whether waiters need timers of their own: the alarm knows the real time only, and
    /// its thread may have failed to start.
    #[inline]
    pub(crate) fn needs_timers(&self) -> bool {
        self.clock.is_paused() || self.alarm.is_missing()
    }
}

impl<M: Manager + 'static> Drop for Shared<M> {
    fn drop(&mut self) {
        if self.ledger().was_alarm_set() {
            alarm::forget(self);
        }
        registry::leave(self.number);
        // The upkeep task finds no pool, and ends.
        self.upkeep.ring(None);
    }
}
