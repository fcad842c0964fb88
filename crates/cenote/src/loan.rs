//! The loan: a resource in its box, and what is known of it while it is lent. The box travels between ledger, lease and tray.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{BreakerState, Failure};
use crate::guarded::{Mishap, guarded_now};
use crate::ledger::{Condition, Grant, Label, Manner, Orders, SlotNo, Work};
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::{Callback, CallbackFailed, Detached, Discarded, Released, ReturnedLate};
use crate::rt;
use crate::shared::{Evidence, Place, Shared};
use crate::tray::TrayRef;

pub(crate) struct Loan<M: Manager + 'static> {
    pub(crate) resource: M::Resource,
    /// Present while it is lent, or lies on a tray.
    lent: Option<Lent<M>>,
}

/// About the lease.
pub(crate) struct Lent<M: Manager + 'static> {
    pub(crate) shared: Arc<Shared<M>>,
    /// Present if it was set aside.
    tray: Option<TrayRef<Loan<M>>>,
    slot: SlotNo,
    pub(crate) id: u64,
    pub(crate) opened_at: Moment,
    pub(crate) uses: u64,
    pub(crate) site: &'static Location<'static>,
}

/// What is left to its holder when a lease has ended.
pub(crate) enum Left<M: Manager + 'static> {
    Nothing,
    /// Somebody was given the resource, and may be waiting for this thread to run them.
    Way,
    /// Something must be done for the resource.
    Work(Arc<Shared<M>>, Work<Box<Loan<M>>>),
}

impl<M: Manager + 'static> Loan<M> {
    pub(crate) fn new(resource: M::Resource) -> Box<Self> {
        Box::new(Self {
            resource,
            lent: None,
        })
    }

    /// The ledger has granted it. With `tray`, it is set aside.
    #[inline]
    pub(crate) fn granted(
        shared: &Arc<Shared<M>>,
        grant: Grant<Box<Self>>,
        tray: Option<TrayRef<Loan<M>>>,
        site: &'static Location<'static>,
    ) -> Box<Self> {
        let mut loan = grant.resource;
        loan.lent = Some(Lent {
            shared: Arc::clone(shared),
            tray,
            slot: grant.slot,
            id: grant.id,
            opened_at: grant.opened_at,
            uses: grant.uses,
            site,
        });
        loan
    }

    /// It was taken from its tray, for the `uses`th time.
    pub(crate) fn taken(&mut self, uses: u64, site: &'static Location<'static>) {
        if let Some(lent) = &mut self.lent {
            lent.uses = uses;
            lent.site = site;
        }
    }

    /// It goes back to the ledger.
    pub(crate) fn shelve(&mut self) {
        self.lent = None;
    }

    pub(crate) fn lent(&self) -> &Lent<M> {
        self.lent
            .as_ref()
            .expect("bug: what is lent knows about its lease")
    }

    pub(crate) fn label(&self, label: Label) {
        let lent = self.lent();
        let label = match &lent.tray {
            Some(tray) => tray.label(label),
            None => Err(label),
        };
        if let Err(label) = label {
            let before = lent.shared.lock_as_is().set_label(lent.slot, Some(label));
            drop(before);
        }
    }

    /// What does it look like? User code, so it may panic; then nobody can tell, and it is broken.
    #[inline]
    fn inspect(&mut self) -> Condition {
        let Self { resource, lent } = self;
        let Some(Lent { shared, id, .. }) = lent else {
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

    /// The lease ends: what is good goes back to its tray, and everything else before the ledger.
    #[inline]
    pub(crate) fn end(mut self: Box<Self>) {
        let condition = self.inspect();
        let left = match condition {
            Condition::Good => self.lay_back(),
            _ => Some(self),
        };
        if let Some(loan) = left {
            loan.come_home(condition, Manner::Dropped);
        }
    }

    /// The lease ends, politely: its holder does what is left.
    pub(crate) fn end_politely(mut self: Box<Self>) -> Left<M> {
        let condition = self.inspect();
        let left = match condition {
            Condition::Good => self.lay_back(),
            _ => Some(self),
        };
        left.map_or(Left::Nothing, |loan| {
            loan.come_home(condition, Manner::Polite)
        })
    }

    /// The lease ends, and the resource with it.
    pub(crate) fn discard(self: Box<Self>) {
        self.come_home(Condition::Discarded, Manner::Dropped);
    }

    #[inline(never)]
    fn come_home(mut self: Box<Self>, condition: Condition, manner: Manner) -> Left<M> {
        let lent = self.lent.take().expect("bug: a lease ends once");
        let shared = &lent.shared;
        let now = shared.clock.now();
        let mut orders = Orders::default();
        let returned = {
            let mut book = shared.lock_as_is();
            lent.fetch(&mut book);
            book.give_back(lent.slot, self, condition, manner, now, &mut orders)
        };
        if shared.observers.any() {
            lent.tell(condition, returned.held, returned.late);
        }
        let served = orders.wakes();
        shared.obey(&mut orders, Place::Drop);
        match condition {
            Condition::Good => {
                let probe = returned.probe;
                shared.report(Evidence::Accepted { probe }, Place::Drop);
            }
            Condition::Broken if returned.refused => {
                shared.report(Evidence::Failed(Failure::Return), Place::Drop);
            }
            // Not known before it is cleaned; and neither a holder who discards it nor what was retired says that the backend is bad.
            Condition::Broken | Condition::Dirty { .. } | Condition::Discarded => {}
        }
        match returned.work {
            Some(work) => Left::Work(lent.shared, work),
            None if served => Left::Way,
            None => Left::Nothing,
        }
    }

    /// Lays it on its tray; or here it is again, for the ledger.
    #[inline]
    fn lay_back(self: Box<Self>) -> Option<Box<Self>> {
        let Some(Lent {
            shared,
            tray: Some(tray),
            ..
        }) = &self.lent
        else {
            return Some(self);
        };
        if shared.is_watched() {
            return self.lay_back_and_tell();
        }
        let tray = TrayRef::clone(tray);
        let now = shared.clock.glance();
        // The reference to the pool is laid on the tray with it.
        tray.lay_back(self, now).err()
    }

    #[cold]
    fn lay_back_and_tell(self: Box<Self>) -> Option<Box<Self>> {
        let Some(Lent {
            shared,
            tray: Some(tray),
            id,
            site,
            ..
        }) = &self.lent
        else {
            return Some(self);
        };
        let (tray, shared) = (TrayRef::clone(tray), Arc::clone(shared));
        let (id, site) = (*id, *site);
        let now = shared.clock.glance();
        match tray.lay_back(self, now) {
            Err(loan) => Some(loan),
            Ok(since) => {
                let held = now.saturating_duration_since(since);
                tell_released(&shared, id, site, held);
                // Nothing is set aside but while the breaker is active.
                let accepted = Evidence::Accepted { probe: false };
                shared.report_in(BreakerState::Active, accepted, Place::Drop);
                None
            }
        }
    }

    /// Leaves the pool for good.
    pub(crate) fn detach(mut self) -> M::Resource {
        let lent = self.lent.take().expect("bug: a lease ends once");
        let shared = &lent.shared;
        let orders = {
            let mut book = shared.lock_as_is();
            lent.fetch(&mut book);
            book.detach(lent.slot, rt::now())
        };
        let event = Detached {
            pool: &shared.name,
            id: lent.id,
            site: lent.site,
        };
        shared.observers.tell(|observer| observer.detached(&event));
        shared.carry_out(orders, Place::Drop);
        self.resource
    }
}

impl<M: Manager + 'static> Lent<M> {
    /// What happens next is the ledger's business.
    fn fetch(&self, book: &mut crate::shared::Book<M>) {
        if self.tray.is_some() {
            self.shared.fetch_one(book, self.slot);
        }
    }

    fn tell(&self, condition: Condition, held: Duration, late: bool) {
        let (pool, id, site) = (&*self.shared.name, self.id, self.site);
        let observers = &self.shared.observers;
        tell_released(&self.shared, id, site, held);
        if condition == Condition::Discarded {
            observers.tell(|observer| observer.discarded(&Discarded { pool, id, site }));
        }
        if late {
            observers.tell(|observer| {
                observer.returned_late(&ReturnedLate {
                    pool,
                    id,
                    held,
                    site,
                })
            });
        }
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
