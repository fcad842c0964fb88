//! A resource of a pool in its box, which travels between ledger, lease and tray; and the end of a
//! lease.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::carry_out::Place;
use super::guarded::{Mishap, guarded_now};
use super::kind::{ErrorOf, Kind, ResourceOf, Threads};
use super::shared::{PoolLedger, PoolRef, PoolWork, Shared};
use super::strategy::Evidence;
use crate::breaker::{BreakerState, Failed, Failure};
use crate::event::Callback;
use crate::held_slot::HeldSlot;
use crate::ledger::{Condition, Label, Manner, Orders, Resource, Returned, SlotNo, TrayNo};
use crate::local_manager::LocalManager;
use crate::manager::{LeaseEnd, Manager};
use crate::observers::Audience;
use crate::rt::Home;
use crate::time::Moment;
use crate::tray::AnyTrays;

pub(crate) struct Pooled<K: Kind> {
    pub(crate) resource: ResourceOf<K>,
    /// Present while it is lent, or lies on a tray. There it goes from hand to hand with the box,
    /// because a reference count that several cores write takes longer than the rest of a trip.
    pool: Option<PoolRef<K>>,
    /// Present if it was lent by a tray, or put on one. The tray may have been closed since.
    pub(crate) tray: Option<TrayPlace<K>>,
    pub(super) slot: SlotNo,
    /// The observers that heard of its lease, if it was lent by a tray. They go with the box, so
    /// that a trip takes them out of the pool once.
    audience: Option<Arc<Audience>>,
    /// The runtime that it was opened on, or checked on last.
    pub(crate) home: Home,
    pub(crate) id: u64,
    pub(crate) uses: u64,
    /// It comes straight from its open, so nothing can be wrong with it yet.
    fresh: bool,
    pub(crate) site: &'static Location<'static>,
}

/// Whether a resource stays in its scope after a use.
#[cfg(not(cenote_model))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    Must,
    IfPinned,
    /// It does not, even if it is pinned.
    Broken,
}

/// A tray, and its number in its pool.
pub(crate) struct TrayPlace<K: Kind> {
    pub(crate) number: TrayNo,
    pub(crate) tray: TrayOf<K>,
}

pub(crate) type TrayOf<K> = <<K as Kind>::Trays as AnyTrays<Box<Pooled<K>>>>::Tray;

/// The work that the caller has to do for a resource. `None` inside: a waiter was served.
type Left<K> = Option<(PoolRef<K>, Option<Box<PoolWork<K>>>)>;

impl<K: Kind> Pooled<K> {
    #[track_caller]
    pub(crate) fn new(resource: ResourceOf<K>) -> Box<Self> {
        Box::new(Self {
            resource,
            pool: None,
            tray: None,
            audience: None,
            // The ledger gives the slot and the number.
            slot: 0,
            home: Home::here(),
            id: 0,
            uses: 0,
            fresh: true,
            site: Location::caller(),
        })
    }

    /// The ledger has granted it.
    #[inline]
    pub(crate) fn granted(
        &mut self,
        pool: &PoolRef<K>,
        tray: Option<TrayPlace<K>>,
        site: &'static Location<'static>,
    ) {
        self.pool = Some(pool.clone());
        self.tray = tray;
        self.site = site;
    }

    /// It was taken from a tray, for the `uses`th time.
    #[inline]
    pub(crate) fn taken(&mut self, uses: u64, site: &'static Location<'static>) {
        self.uses = uses;
        self.site = site;
    }

    /// Tells the observers that it was taken from a tray.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_taken(&mut self) {
        let audience = self.pool().observers.audience();
        audience.acquired(self.id, Duration::ZERO, self.site);
        self.audience = Some(audience);
    }

    /// The same for a resource that the ledger granted.
    #[inline]
    pub(crate) fn fault_unless_fresh(&mut self) -> Option<Condition> {
        if self.fresh { None } else { self.fault() }
    }

    /// Returns why it must not be lent, if it must not: its runtime is gone, or its manager knows
    /// that it is broken.
    #[inline]
    pub(crate) fn fault(&mut self) -> Option<Condition> {
        let Self {
            resource, pool, id, ..
        } = self;
        let shared = pool.as_ref()?;
        if self.home.is_gone() {
            return Some(Condition::Stranded);
        }
        let (manager, end) = (&shared.manager, LeaseEnd::Idle);
        let fault = guarded_now(|| match manager.is_broken(resource, end) {
            true => Some(Condition::Dead),
            false if manager.is_spent(resource, end) => Some(Condition::Spent { held: false }),
            false => None,
        });
        fault.unwrap_or_else(|mishap| {
            tell_panicked(shared, *id, &mishap);
            Some(Condition::Dead)
        })
    }

    /// Drops the reference to the pool: a resource in the ledger does not keep its pool alive.
    pub(crate) fn unbind(&mut self) {
        self.pool = None;
    }

    pub(crate) fn pool(&self) -> &PoolRef<K> {
        self.pool
            .as_ref()
            .expect("bug: a lent resource knows its pool")
    }

    pub(crate) fn opened_at(&self) -> Moment {
        self.pool().ledger().opened_at(self.slot)
    }

    pub(crate) fn label(&self, label: Label) {
        let label = match &self.tray {
            Some(place) => self.pool().trays.label(place.number, self.slot, label),
            None => Err(label),
        };
        if let Err(label) = label {
            let mut ledger = self.pool().ledger();
            let before = ledger.set_label(self.slot, Some(label));
            drop(ledger);
            drop(before);
        }
    }

    /// Asks the manager for the condition of the resource. A panic counts as broken.
    #[inline]
    fn inspect(&mut self, end: LeaseEnd) -> Condition {
        let Self {
            resource, pool, id, ..
        } = self;
        let Some(shared) = pool else {
            return Condition::Broken;
        };
        let manager = &shared.manager;
        let seen = guarded_now(|| {
            if manager.is_broken(resource, end) {
                return Condition::Broken;
            }
            if manager.is_spent(resource, end) {
                return Condition::Spent { held: true };
            }
            let clean = manager.needs_cleaning(resource);
            match clean || shared.works_on_return {
                true => Condition::Dirty { clean },
                false => Condition::Good,
            }
        });
        seen.unwrap_or_else(|mishap| {
            tell_panicked(shared, *id, &mishap);
            Condition::Broken
        })
    }

    /// Ends the lease. A good resource goes back to its tray, and any other to the ledger.
    #[inline]
    pub(crate) fn end(mut self: Box<Self>, end: LeaseEnd, manner: Manner) -> Left<K> {
        let condition = self.inspect(end);
        let left = match condition {
            Condition::Good => self.lay_back(),
            _ => Some(self),
        };
        left?.come_back(condition, manner)
    }

    /// Gives the resource to the ledger. The next waiter is woken before an observer is told, so
    /// that a slow observer delays no waiter.
    #[inline(never)]
    pub(crate) fn come_back(mut self: Box<Self>, condition: Condition, manner: Manner) -> Left<K> {
        let shared = self.pool.take().expect("bug: a lease ends once");
        self.audience = None;
        let Self { slot, id, site, .. } = *self;
        let now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let returned = {
            let mut ledger = match condition {
                // A dead resource makes those on the trays suspect, too.
                Condition::Broken | Condition::Dead => shared.ledger_off_trays(),
                _ => shared.ledger(),
            };
            self.take_off(&shared, &mut ledger);
            ledger.give_back(slot, self, condition, manner, now, &mut orders)
        };
        let served = orders.wakes();
        shared.carry_out(orders, Place::Drop);
        if (shared.observers.any() || returned.late) && condition.was_held() {
            let held = now.saturating_duration_since(returned.since);
            shared.observers.released(id, held, site);
            if condition == Condition::Discarded {
                shared.observers.discarded(id, site);
            }
            if returned.late {
                shared.observers.returned_late(id, held, site);
            }
        }
        if shared.strategy.is_some() {
            if let Some(evidence) = evidence(condition, &returned) {
                shared.report(evidence, Place::Drop);
            }
        }
        (served || returned.work.is_some()).then_some((shared, returned.work))
    }

    /// Takes its slot off its tray, if it is still on one.
    pub(super) fn take_off(&self, shared: &Shared<K>, ledger: &mut PoolLedger<K>) {
        if let Some(tray) = ledger.tray_of(self.slot) {
            shared.take_off(ledger, tray);
        }
    }

    /// Lays it on its tray, or returns it for the ledger.
    #[inline]
    fn lay_back(self: Box<Self>) -> Option<Box<Self>> {
        let (Some(shared), Some(place)) = (&self.pool, &self.tray) else {
            return Some(self);
        };
        shared.trays.remember(place.number);
        let now = shared.clock.coarse_now();
        if shared.is_watched() || self.audience.is_some() {
            return self.lay_back_watched(now);
        }
        K::lay_back(self, now).err()
    }

    /// The same for a pool with observers or a strategy, which hear of it afterwards. The reference
    /// to the pool is laid on the tray, too, so a strategy needs another.
    #[cold]
    #[inline(never)]
    fn lay_back_watched(mut self: Box<Self>, now: Moment) -> Option<Box<Self>> {
        let Self { id, site, .. } = *self;
        let before = self.audience.take();
        let shared = self.pool();
        let audience = shared.observers.audience_after(before);
        let judged = shared.strategy.is_some().then(|| shared.clone());
        let since = match K::lay_back(self, now) {
            Ok(since) => since,
            Err(pooled) => return Some(pooled),
        };
        if let Some(audience) = audience {
            audience.released(id, now.saturating_duration_since(since), site);
        }
        if let Some(shared) = judged {
            // No slot is on a tray unless the breaker is active.
            let accepted = Evidence::Accepted { probe: false };
            shared.report_in(BreakerState::Active, accepted, Place::Drop);
        }
        None
    }

    /// Takes the resource out of the pool for good.
    pub(crate) fn detach(mut self) -> ResourceOf<K> {
        let shared = self.pool.take().expect("bug: a lease ends once");
        shared.severers.remove(self.slot);
        let now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let mut ledger = shared.ledger();
        self.take_off(&shared, &mut ledger);
        ledger.detach(self.slot, now, &mut orders);
        drop(ledger);
        shared.carry_out(orders, Place::Drop);
        shared.observers.detached(self.id, self.site);
        self.resource
    }
}

impl<M: Manager + 'static> Pooled<Threads<M>> {
    /// Takes the resource out of the pool for good, and keeps its slot occupied.
    pub(crate) fn hold_slot(mut self) -> (M::Resource, HeldSlot<M>) {
        let shared = self.pool.take().expect("bug: a lease ends once");
        shared.severers.remove(self.slot);
        self.take_off(&shared, &mut shared.ledger());
        let held = HeldSlot::new(shared, self.slot, self.id, self.site);
        (self.resource, held)
    }

    /// Asks the manager whether the resource must stay in its scope. A panic counts as broken.
    #[cfg(not(cenote_model))]
    pub(crate) fn stay(&mut self, end: LeaseEnd) -> Stay {
        // A use that went well does not end the lease of a resource that stays.
        let end = match end {
            LeaseEnd::Returned => LeaseEnd::Idle,
            end => end,
        };
        let Self {
            resource, pool, id, ..
        } = self;
        let Some(shared) = pool else {
            return Stay::Broken;
        };
        let manager: &M = &shared.manager;
        let seen = guarded_now(|| match Manager::must_stay(manager, resource) {
            true => Stay::Must,
            false if Manager::is_broken(manager, resource, end) => Stay::Broken,
            false => Stay::IfPinned,
        });
        seen.unwrap_or_else(|mishap| {
            tell_panicked(shared, *id, &mishap);
            Stay::Broken
        })
    }
}

impl<K: Kind> Resource for Box<Pooled<K>> {
    type Error = ErrorOf<K>;

    fn opened(&mut self, slot: SlotNo, id: u64) {
        self.slot = slot;
        self.id = id;
    }

    #[inline]
    fn lent(&mut self, uses: u64, fresh: bool) {
        self.uses = uses;
        self.fresh = fresh;
    }

    #[inline]
    fn slot(&self) -> SlotNo {
        self.slot
    }
}

/// What the return of a resource says about the backend.
#[cold]
fn evidence<R>(condition: Condition, returned: &Returned<R>) -> Option<Evidence<'static>> {
    match condition {
        Condition::Good => Some(Evidence::Accepted {
            probe: returned.probe,
        }),
        Condition::Broken if returned.refused => {
            Some(Evidence::Failed(Failed::new(Failure::Return)))
        }
        Condition::Dead => Some(Evidence::Failed(Failed::new(Failure::Check))),
        // A dirty one is not known before it is cleaned. A holder that discards a resource, or a
        // resource that was retired, does not say that the backend is bad.
        Condition::Broken
        | Condition::Spent { .. }
        | Condition::Dirty { .. }
        | Condition::Discarded
        | Condition::Stranded => None,
    }
}

#[cold]
fn tell_panicked<K: Kind>(shared: &Shared<K>, id: u64, mishap: &Mishap) {
    let message = mishap.to_string();
    shared
        .observers
        .callback_failed(id, Callback::Inspect, &message);
}
