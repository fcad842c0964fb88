//! The loan: a resource in its box, and what is known of it while it is lent. The box travels between ledger, lease and tray.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{BreakerState, Failure};
use crate::error::OpenError;
use crate::guarded::{Mishap, guarded_now};
use crate::ledger::{Condition, Grant, Label, Manner, Orders, Resource, SlotNo, Work};
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::{Callback, CallbackFailed, Detached, Discarded, Released, ReturnedLate};
use crate::rt;
use crate::shared::{Book, Evidence, Place, Shared};
use crate::tray::TrayRef;

pub(crate) struct Loan<M: Manager + 'static> {
    pub(crate) resource: M::Resource,
    /// Present while it is lent, or lies on a tray. It goes from hand to hand: to count references is what costs most where many cores are
    /// at it.
    pool: Option<Arc<Shared<M>>>,
    /// Present if it was set aside.
    tray: Option<TrayRef<Loan<M>>>,
    slot: SlotNo,
    pub(crate) id: u64,
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

    /// The ledger has granted it. With `tray`, it is set aside.
    #[inline]
    pub(crate) fn granted(
        pool: &Arc<Shared<M>>,
        grant: Grant<Box<Self>>,
        tray: Option<TrayRef<Loan<M>>>,
        site: &'static Location<'static>,
    ) -> Box<Self> {
        let mut loan = grant.resource;
        if loan.pool.is_none() {
            loan.pool = Some(Arc::clone(pool));
        }
        loan.tray = tray;
        loan.taken(grant.uses, site);
        loan
    }

    /// It was taken, for the `uses`th time.
    #[inline]
    pub(crate) fn taken(&mut self, uses: u64, site: &'static Location<'static>) {
        self.uses = uses;
        self.site = site;
    }

    /// Does it come straight from another user?
    #[inline]
    pub(crate) fn is_handed_over(&self) -> bool {
        self.pool.is_some()
    }

    fn pool(&self) -> &Arc<Shared<M>> {
        self.pool
            .as_ref()
            .expect("bug: what is lent knows its pool")
    }

    pub(crate) fn opened_at(&self) -> Moment {
        self.pool().lock_as_is().opened_at(self.slot)
    }

    pub(crate) fn label(&self, label: Label) {
        let label = match &self.tray {
            Some(tray) => tray.label(label),
            None => Err(label),
        };
        if let Err(label) = label {
            let mut book = self.pool().lock_as_is();
            let before = book.set_label(self.slot, Some(label));
            drop(book);
            drop(before);
        }
    }

    /// What does it look like? User code, so it may panic; then nobody can tell, and it is broken.
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
        let shared = self.pool.take().expect("bug: a lease ends once");
        let Self { slot, id, site, .. } = *self;
        let now = shared.clock.glance();
        let mut orders = Orders::default();
        let aside = self.untag(&shared);
        let returned = {
            let mut book = shared.lock_as_is();
            if aside {
                self.fetch(&shared, &mut book);
            }
            book.give_back(slot, self, condition, manner, now, &mut orders)
        };
        if shared.observers.any() {
            let held = now.saturating_duration_since(returned.since);
            tell_released(&shared, id, site, held);
            if condition == Condition::Discarded {
                tell_discarded(&shared, id, site);
            }
            if returned.late {
                tell_late(&shared, id, site, held);
            }
        }
        if returned.work.is_none() && orders.is_one_letter() && shared.strategy.is_none() {
            hand_over(shared, &mut orders);
            return Left::Way;
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
            Some(work) => Left::Work(shared, work),
            None if served => Left::Way,
            None => Left::Nothing,
        }
    }

    /// It is lent no more, as far as the tags know. Answers with whether it was set aside.
    #[inline]
    fn untag(&self, shared: &Shared<M>) -> bool {
        let aside = self.tray.is_some();
        if !aside {
            shared.tags.clear(self.slot);
        }
        aside
    }

    /// What happens next is the ledger's business.
    fn fetch(&self, shared: &Shared<M>, book: &mut Book<M>) {
        shared.fetch_one(book, self.slot);
        shared.tags.clear(self.slot);
    }

    /// Lays it on its tray; or here it is again, for the ledger.
    #[inline]
    fn lay_back(self: Box<Self>) -> Option<Box<Self>> {
        let (Some(shared), Some(tray)) = (&self.pool, &self.tray) else {
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
        let (Some(shared), Some(tray)) = (&self.pool, &self.tray) else {
            return Some(self);
        };
        let (tray, shared) = (TrayRef::clone(tray), Arc::clone(shared));
        let Self { id, site, .. } = *self;
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
        let shared = self.pool.take().expect("bug: a lease ends once");
        let aside = self.untag(&shared);
        let orders = {
            let mut book = shared.lock_as_is();
            if aside {
                self.fetch(&shared, &mut book);
            }
            book.detach(self.slot, rt::now())
        };
        let event = Detached {
            pool: &shared.name,
            id: self.id,
            site: self.site,
        };
        shared.observers.tell(|observer| observer.detached(&event));
        shared.carry_out(orders, Place::Drop);
        self.resource
    }
}

impl<M: Manager + 'static> Resource for Box<Loan<M>> {
    type Failure = OpenError<M::Error>;

    fn opened(&mut self, slot: SlotNo, id: u64) {
        self.slot = slot;
        self.id = id;
    }

    fn shelve(&mut self) {
        self.pool = None;
    }
}

/// Straight to the next, who gets the reference to the pool with it.
#[inline]
fn hand_over<M: Manager>(pool: Arc<Shared<M>>, orders: &mut Orders<Box<Loan<M>>>) {
    if let Some(mut letter) = orders.letter() {
        letter.grant.resource.pool = Some(pool);
        letter.deliver(refused);
    }
    orders.call_all(|_| unreachable!("bug: it was one letter"));
}

#[cold]
fn refused<M: Manager>(mut grant: Grant<Box<Loan<M>>>) {
    if let Some(pool) = grant.resource.pool.take() {
        pool.refused_grant(grant);
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
