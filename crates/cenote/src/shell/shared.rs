//! The parts that all handles, leases and tasks of one pool share, and the ways to the ledger.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::carry_out::Place;
use super::kind::Kind;
use super::pooled::Pooled;
use super::severers::Severers;
use super::strategy::StrategyPlace;
use super::upkeep_task::{Upkeep, UpkeepGroup};
use super::uppers::Uppers;
use crate::config::{Config, ConfigError, Limits};
use crate::event::Observer;
use crate::hook::Hooks;
use crate::ledger::{Ask, Ledger, Orders, Rest, TrayNo, Work, may_use_trays};
use crate::log::Log;
use crate::observers::Observers;
use crate::rt::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::status::Leftover;
use crate::time::{self, Clock, Moment};
use crate::tray::AnyTrays;

pub(crate) type PoolLedger<K> = Ledger<Box<Pooled<K>>>;
pub(crate) type PoolOrders<K> = Orders<Box<Pooled<K>>>;
pub(crate) type PoolRest<K> = Rest<Box<Pooled<K>>>;
pub(crate) type PoolWork<K> = Work<Box<Pooled<K>>>;

pub(crate) struct Shared<K: Kind> {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) manager: K::Manager,
    pub(crate) hooks: Hooks<K::Hook>,
    pub(crate) observers: Observers,
    pub(crate) strategy: StrategyPlace,
    pub(crate) severers: Severers,
    pub(crate) uppers: Uppers,
    /// Every resource that comes back needs work: a check, or a hook.
    pub(crate) works_on_return: bool,
    pub(crate) trays: K::Trays,
    pub(crate) clock: Clock,
    pub(crate) ledger: K::Lock,
    pub(crate) upkeep: Upkeep<K>,
    /// How many handles there are. The pool closes with the last one; leases may outlive it.
    pub(crate) handles: AtomicUsize,
    pub(crate) own: K::Own,
}

/// A counted reference to a pool.
pub(crate) struct PoolRef<K: Kind>(pub(crate) K::Ref);

impl<K: Kind> Clone for PoolRef<K> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Kind> Deref for PoolRef<K> {
    type Target = Shared<K>;

    #[inline]
    fn deref(&self) -> &Shared<K> {
        &self.0
    }
}

/// What a pool is built of, beside its settings.
pub(crate) struct Parts<K: Kind> {
    pub(crate) manager: K::Manager,
    pub(crate) hooks: Hooks<K::Hook>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) strategy: StrategyPlace,
    pub(crate) seed: Option<u64>,
    pub(crate) upkeep: Arc<UpkeepGroup<K>>,
    pub(crate) own: K::Own,
}

impl<K: Kind> Shared<K> {
    /// Builds a pool, or says which setting is wrong.
    pub(crate) fn build(mut config: Config, parts: Parts<K>) -> Result<Self, ConfigError> {
        let name: Arc<str> = Arc::from(&**config.name.get_or_insert_with(generated_name));
        let limits = Arc::new(Limits::check(config)?);
        let asks = parts.hooks.before_acquire.is_some();
        let asks_back = parts.hooks.before_release.is_some();
        let size = may_use_trays(&limits, asks || asks_back).then_some(limits.max_size);
        let trays = K::Trays::for_size(size.unwrap_or(0));
        let any_seed = || RandomState::new().hash_one(&name);
        let seed = parts.seed.unwrap_or_else(any_seed);
        let observers = Observers::new(Arc::clone(&name), parts.observers);
        let ledger = Ledger::new(
            Arc::clone(&limits),
            Arc::clone(&name),
            asks,
            trays.len(),
            seed,
            time::now(),
        );
        let shared = Self {
            name,
            manager: parts.manager,
            clock: Clock::new(observers.any()),
            works_on_return: limits.check_on_return || asks_back,
            hooks: parts.hooks,
            observers,
            strategy: parts.strategy,
            severers: Severers::default(),
            uppers: Uppers::default(),
            ledger: ledger.into(),
            trays,
            limits,
            upkeep: Upkeep::new(parts.upkeep),
            handles: AtomicUsize::new(1),
            own: parts.own,
        };
        shared.observers.pool_opened(shared.limits.max_size);
        Ok(shared)
    }

    /// Locks the ledger. Make one call and release it: no user code runs under this lock.
    #[inline]
    pub(crate) fn ledger(&self) -> K::Guard<'_> {
        K::lock(&self.ledger)
    }

    /// Locks the ledger, with no slot on a tray: for decisions that depend on all slots.
    pub(crate) fn ledger_off_trays(&self) -> K::Guard<'_> {
        let mut ledger = self.ledger();
        self.clear_trays(&mut ledger);
        ledger
    }

    /// Locks the ledger for a caller that asks for a resource.
    #[inline]
    pub(crate) fn ledger_for_request(&self, ask: Ask, now: Moment) -> K::Guard<'_> {
        let mut ledger = self.ledger();
        // No slot is put on a tray while there is no upkeep task. A task that ends clears them.
        ledger.note_upkeep(self.upkeep.is_running());
        if ledger.needs_trays(ask, now) {
            self.clear_trays(&mut ledger);
        }
        ledger
    }

    fn clear_trays(&self, ledger: &mut PoolLedger<K>) {
        for tray in ledger.trays() {
            if ledger.is_tray_taken(tray) {
                self.take_off(ledger, tray);
            }
        }
    }

    /// Takes a slot off its tray. Under the ledger's lock, so that a slot is always either on its
    /// tray or in the ledger.
    pub(crate) fn take_off(&self, ledger: &mut PoolLedger<K>, tray: TrayNo) {
        let off = self.trays.close(tray);
        let mut off = off.expect("bug: a tray that is taken is open");
        if let Some(pooled) = &mut off.resource {
            // A pool to which its own idle resources refer would never end. This is not the last
            // reference, because the caller has one.
            pooled.unbind();
        }
        ledger.taken_off(tray, off);
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
}

impl<K: Kind> PoolRef<K> {
    /// Makes one call to the ledger, and carries out its orders after the lock is released.
    pub(crate) fn order<T>(
        &self,
        place: Place,
        call: impl FnOnce(&mut PoolLedger<K>, Moment, &mut PoolOrders<K>) -> T,
    ) -> T {
        let now = time::now();
        let mut orders = Orders::default();
        let answer = call(&mut self.ledger_off_trays(), now, &mut orders);
        self.carry_out(orders, place);
        answer
    }

    /// Closes the pool: every waiter is told, and idle resources are closed.
    pub(crate) fn close(&self, place: Place) {
        let (was_open, in_use) = self.order(place, |ledger, now, orders| {
            (ledger.close(now, orders), ledger.status(now).in_use)
        });
        if was_open {
            self.observers.pool_closed(in_use);
        }
        self.uppers.tell();
    }
}

impl<K: Kind> Drop for Shared<K> {
    fn drop(&mut self) {
        K::ended(self);
    }
}

pub(crate) fn generated_name() -> String {
    static BUILT: AtomicU64 = AtomicU64::new(1);
    format!("pool-{}", BUILT.fetch_add(1, Ordering::Relaxed))
}
