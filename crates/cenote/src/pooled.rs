//! A pooled resource in its box, and what is known of it while it is lent. The box travels between ledger, lease and tray.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{BreakerState, Failure};
use crate::error::OpenError;
use crate::guarded::{Mishap, guarded_now};
use crate::ledger::{Condition, Grant, Label, Manner, Orders, Resource, SlotNo, TrayNo, Work};
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::{Callback, CallbackFailed, Detached, Discarded, Released, ReturnedLate};
use crate::shared::{Book, Place, Shared};
use crate::strategy::Evidence;
use crate::tray::TrayRef;

pub(crate) struct Pooled<M: Manager + 'static> {
    pub(crate) resource: M::Resource,
    /// Present while it is lent, or lies on a tray: there it goes from hand to hand, because counting references is the most expensive part
    /// of a trip where many cores take part.
    pool: Option<Arc<Shared<M>>>,
    /// Present if it was lent by a tray, or put on one. The tray may have been closed since.
    tray: Option<TrayPlace<M>>,
    slot: SlotNo,
    pub(crate) id: u64,
    pub(crate) uses: u64,
    pub(crate) site: &'static Location<'static>,
}

/// A tray, and its number in its pool.
pub(crate) struct TrayPlace<M: Manager + 'static> {
    pub(crate) number: TrayNo,
    pub(crate) tray: TrayRef<Pooled<M>>,
}

/// What is left to the caller when a lease has ended.
pub(crate) enum Left<M: Manager + 'static> {
    Nothing,
    /// A waiter was given the resource, and may be waiting for this thread to run it.
    ServedAnother,
    /// Something must be done for the resource.
    Work(Arc<Shared<M>>, Work<Box<Pooled<M>>>),
}

impl<M: Manager + 'static> Pooled<M> {
    #[track_caller]
    pub(crate) fn new(resource: M::Resource) -> Box<Self> {
        Box::new(Self {
            resource,
            pool: None,
            tray: None,
            // The ledger tells when it has it.
            slot: 0,
            id: 0,
            uses: 0,
            site: Location::caller(),
        })
    }

    /// The ledger has granted it.
    #[inline]
    pub(crate) fn granted(
        pool: &Arc<Shared<M>>,
        grant: Grant<Box<Self>>,
        tray: Option<TrayPlace<M>>,
        site: &'static Location<'static>,
    ) -> Box<Self> {
        let mut pooled = grant.resource;
        pooled.pool = Some(Arc::clone(pool));
        pooled.tray = tray;
        pooled.taken(grant.uses, site);
        pooled
    }

    /// It was taken, for the `uses`th time.
    #[inline]
    pub(crate) fn taken(&mut self, uses: u64, site: &'static Location<'static>) {
        self.uses = uses;
        self.site = site;
    }

    /// Asks the manager whether it is known to be broken, before it is lent.
    #[inline]
    pub(crate) fn is_dead(&mut self) -> bool {
        let Self {
            resource, pool, id, ..
        } = self;
        let Some(shared) = pool else { return true };
        let manager = &shared.manager;
        guarded_now(|| manager.is_broken(resource)).unwrap_or_else(|mishap| {
            tell_panicked(shared, *id, &mishap);
            true
        })
    }

    /// It is dead, and was not lent: it is closed.
    #[cold]
    pub(crate) fn bury(self: Box<Self>) {
        self.come_back(Condition::Dead, Manner::Dropped);
    }

    /// It lies in the ledger from now on, which does not keep its pool alive.
    pub(crate) fn unbind(&mut self) {
        self.pool = None;
    }

    fn pool(&self) -> &Arc<Shared<M>> {
        self.pool
            .as_ref()
            .expect("bug: a lent resource knows its pool")
    }

    pub(crate) fn opened_at(&self) -> Moment {
        self.pool().ledger().opened_at(self.slot)
    }

    pub(crate) fn label(&self, label: Label) {
        let label = match &self.tray {
            Some(TrayPlace { tray, .. }) => tray.label(self.slot, label),
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
    fn inspect(&mut self) -> Condition {
        let Self {
            resource, pool, id, ..
        } = self;
        let Some(shared) = pool else {
            return Condition::Broken;
        };
        let Shared {
            manager,
            works_on_return,
            ..
        } = &**shared;
        let seen = guarded_now(|| {
            (
                manager.is_broken(resource),
                manager.needs_cleaning(resource),
            )
        });
        match seen {
            Ok((true, _)) => Condition::Broken,
            Ok((false, clean)) if clean || *works_on_return => Condition::Dirty { clean },
            Ok((false, _)) => Condition::Good,
            Err(mishap) => {
                tell_panicked(shared, *id, &mishap);
                Condition::Broken
            }
        }
    }

    /// The lease ends: a good resource goes back to its tray, and any other before the ledger.
    #[inline]
    pub(crate) fn end(mut self: Box<Self>, manner: Manner) -> Left<M> {
        let condition = self.inspect();
        let left = match condition {
            Condition::Good => self.lay_back(),
            _ => Some(self),
        };
        match left {
            Some(pooled) => pooled.come_back(condition, manner),
            None => Left::Nothing,
        }
    }

    /// The lease ends, and the resource with it.
    pub(crate) fn discard(self: Box<Self>) {
        self.come_back(Condition::Discarded, Manner::Dropped);
    }

    /// Gives the resource to the ledger. The next waiter is woken before an observer is told, so that a slow observer delays no waiter.
    #[inline(never)]
    fn come_back(mut self: Box<Self>, condition: Condition, manner: Manner) -> Left<M> {
        let shared = self.pool.take().expect("bug: a lease ends once");
        let Self { slot, id, site, .. } = *self;
        let now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let returned = {
            let mut ledger = match condition {
                // A dead resource makes those on the trays suspect.
                Condition::Broken | Condition::Dead => shared.ledger_off_trays(),
                _ => shared.ledger(),
            };
            self.take_off(&shared, &mut ledger);
            ledger.give_back(slot, self, condition, manner, now, &mut orders)
        };
        let served = orders.wakes();
        shared.carry_out(&mut orders, Place::Drop);
        if shared.observers.any() && condition != Condition::Dead {
            let held = now.saturating_duration_since(returned.since);
            tell_released(&shared, id, site, held);
            if condition == Condition::Discarded {
                tell_discarded(&shared, id, site);
            }
            if returned.late {
                tell_late(&shared, id, site, held);
            }
        }
        let evidence = match condition {
            Condition::Good => Some(Evidence::Accepted {
                probe: returned.probe,
            }),
            Condition::Broken if returned.refused => Some(Evidence::Failed(Failure::Return)),
            Condition::Dead => Some(Evidence::Failed(Failure::Check)),
            // Not known before it is cleaned; and neither a holder that discards it nor a resource that was retired says that the backend
            // is bad.
            Condition::Broken | Condition::Dirty { .. } | Condition::Discarded => None,
        };
        if let Some(evidence) = evidence {
            shared.report(evidence, Place::Drop);
        }
        match returned.work {
            Some(work) => Left::Work(shared, work),
            None if served => Left::ServedAnother,
            None => Left::Nothing,
        }
    }

    /// Takes its slot off its tray, if it is still on one.
    fn take_off(&self, shared: &Shared<M>, ledger: &mut Book<M>) {
        if self.tray.is_some() {
            if let Some(tray) = ledger.tray_of(self.slot) {
                shared.take_off(ledger, tray);
            }
        }
    }

    /// Lays it on its tray, or returns it for the ledger.
    #[inline]
    fn lay_back(self: Box<Self>) -> Option<Box<Self>> {
        let (Some(shared), Some(place)) = (&self.pool, &self.tray) else {
            return Some(self);
        };
        if shared.is_watched() {
            return self.lay_back_and_tell();
        }
        shared.trays.remember(place.number);
        let (tray, slot) = (TrayRef::clone(&place.tray), self.slot);
        let now = shared.clock.coarse_now();
        // The reference to the pool is laid on the tray with it.
        tray.lay_back(slot, self, now).err()
    }

    #[cold]
    fn lay_back_and_tell(self: Box<Self>) -> Option<Box<Self>> {
        let (Some(shared), Some(place)) = (&self.pool, &self.tray) else {
            return Some(self);
        };
        shared.trays.remember(place.number);
        let (tray, shared) = (TrayRef::clone(&place.tray), Arc::clone(shared));
        let Self { id, site, slot, .. } = *self;
        let now = shared.clock.coarse_now();
        match tray.lay_back(slot, self, now) {
            Err(pooled) => Some(pooled),
            Ok(since) => {
                let held = now.saturating_duration_since(since);
                tell_released(&shared, id, site, held);
                // No slot is on a tray but while the breaker is active.
                let accepted = Evidence::Accepted { probe: false };
                shared.report_in(BreakerState::Active, accepted, Place::Drop);
                None
            }
        }
    }

    /// Leaves the pool for good.
    pub(crate) fn detach(mut self) -> M::Resource {
        let shared = self.pool.take().expect("bug: a lease ends once");
        let mut orders = {
            let mut ledger = shared.ledger();
            self.take_off(&shared, &mut ledger);
            ledger.detach(self.slot, shared.clock.exact_now())
        };
        shared.carry_out(&mut orders, Place::Drop);
        let event = Detached {
            pool: &shared.name,
            id: self.id,
            site: self.site,
        };
        shared.observers.tell(|observer| observer.detached(&event));
        self.resource
    }
}

impl<M: Manager + 'static> Resource for Box<Pooled<M>> {
    type Failure = OpenError<M::Error>;

    fn opened(&mut self, slot: SlotNo, id: u64) {
        self.slot = slot;
        self.id = id;
    }
}

#[cold]
fn tell_panicked<M: Manager + 'static>(shared: &Shared<M>, id: u64, mishap: &Mishap) {
    let event = CallbackFailed {
        pool: &shared.name,
        id,
        callback: Callback::Inspect,
        message: &mishap.to_string(),
    };
    shared
        .observers
        .tell(|observer| observer.callback_failed(&event));
}

fn tell_released<M: Manager + 'static>(
    shared: &Shared<M>,
    id: u64,
    site: &'static Location<'static>,
    held: Duration,
) {
    let event = Released {
        pool: &shared.name,
        id,
        held,
        site,
    };
    shared.observers.tell(|observer| observer.released(&event));
}

#[cold]
fn tell_discarded<M: Manager + 'static>(
    shared: &Shared<M>,
    id: u64,
    site: &'static Location<'static>,
) {
    let event = Discarded {
        pool: &shared.name,
        id,
        site,
    };
    shared.observers.tell(|observer| observer.discarded(&event));
}

#[cold]
fn tell_late<M: Manager + 'static>(
    shared: &Shared<M>,
    id: u64,
    site: &'static Location<'static>,
    held: Duration,
) {
    let event = ReturnedLate {
        pool: &shared.name,
        id,
        held,
        site,
    };
    shared
        .observers
        .tell(|observer| observer.returned_late(&event));
}
