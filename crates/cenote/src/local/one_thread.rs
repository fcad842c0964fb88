//! The kind of a pool that belongs to one thread: no lock, no atomic count, no alarm.

use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use super::local_lease::LocalLease;
use crate::local_manager::LocalManager;
use crate::rt;
use crate::shell::carry_out::Place;
use crate::shell::driver;
use crate::shell::kind::Kind;
use crate::shell::pooled::Pooled;
use crate::shell::shared::{PoolLedger, PoolRef, PoolWork, Shared};
use crate::shell::upkeep_task::{self, Watch};
use crate::time::Moment;
use crate::tray::cell_trays::{CellTray, CellTrays, OnCellTray};

/// A pool that belongs to one thread.
pub(crate) struct OneThread<M>(M);

/// A hook whose future stays on its thread.
pub(crate) type LocalHook<R> = Rc<dyn for<'a> Fn(&'a mut R) -> LocalFuture<'a, bool>>;

pub(crate) type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

impl<M: LocalManager + 'static> Kind for OneThread<M> {
    type Manager = M;
    type Lease = LocalLease<M>;
    type Ref = Rc<Shared<Self>>;
    type Weak = Weak<Shared<Self>>;
    type Lock = RefCell<PoolLedger<Self>>;
    type Guard<'a> = RefMut<'a, PoolLedger<Self>>;
    type Trays = CellTrays<Box<Pooled<Self>>>;
    type Hook = LocalHook<M::Resource>;
    type Answer<'a> = LocalFuture<'a, bool>;
    type Job = LocalFuture<'static, ()>;
    type Own = ();

    /// No user code runs while the ledger is borrowed, so it is never borrowed twice.
    #[inline]
    fn lock(lock: &Self::Lock) -> Self::Guard<'_> {
        lock.borrow_mut()
    }

    fn downgrade(pool: &PoolRef<Self>) -> Self::Weak {
        Rc::downgrade(&pool.0)
    }

    fn upgrade(pool: &Self::Weak) -> Option<PoolRef<Self>> {
        pool.upgrade().map(PoolRef)
    }

    fn ask<'a>(hook: &'a Self::Hook, resource: &'a mut M::Resource) -> Self::Answer<'a> {
        hook(resource)
    }

    /// The trays are a part of the pool, so they need a reference to it that is not laid on them.
    #[inline(always)]
    fn lay_back(pooled: Box<Pooled<Self>>, now: Moment) -> Result<Moment, Box<Pooled<Self>>> {
        let pool = pooled.pool().clone();
        pool.trays.lay_back(pooled, now)
    }

    /// It cannot be told without a panic whether the caller is in a `LocalSet`. So a plain function
    /// starts no task, and leaves it to upkeep.
    fn here() -> Place {
        Place::Drop
    }

    /// A caller outside of the `LocalSet` leaves the job to upkeep.
    fn start_work(pool: &PoolRef<Self>, work: PoolWork<Self>) -> bool {
        let started = Self::start(Self::job(pool, work));
        started.map_err(|job| pool.upkeep.leave(job)).is_ok()
    }

    fn job(pool: &PoolRef<Self>, work: PoolWork<Self>) -> Self::Job {
        Box::pin(driver::run(pool, work))
    }

    fn start(job: Self::Job) -> Result<(), Self::Job> {
        rt::spawn_local(job)
    }

    fn go_on(pool: &PoolRef<Self>, job: Self::Job) {
        pool.upkeep.leave(job);
    }

    fn start_upkeep(watch: Watch<Self>) -> bool {
        rt::spawn_local(upkeep_task::run(watch)).is_ok()
    }

    #[inline]
    fn needs_timers(_: &Shared<Self>) -> bool {
        true
    }

    fn set_alarm(_: &PoolRef<Self>, _: Moment) {}

    fn has_lost_alarm(_: &Shared<Self>) -> bool {
        false
    }

    fn ended(_: &Shared<Self>) {}
}

impl<M: LocalManager + 'static> OnCellTray for Box<Pooled<OneThread<M>>> {
    #[inline]
    fn tray(&self) -> Option<&CellTray<Self>> {
        self.tray.as_ref().map(|place| &place.tray)
    }
}
