//! The kind of a pool: whether many threads share it, or it belongs to one. The shell is the same
//! code for both, and everything in which they differ is here.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Arc, Weak};

use super::carry_out::Place;
use super::driver;
use super::pooled::Pooled;
use super::shared::{PoolLedger, PoolRef, PoolWork, Shared};
use super::upkeep_task::{self, Watch};
use crate::hook::{Answer, Hook};
use crate::lease::Lease;
use crate::local_manager::LocalManager;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry;
use crate::rt;
use crate::rt::sync::{CachePadded, Mutex, MutexGuard, PoisonError};
use crate::time::Moment;
use crate::time::alarm::{self, Alarming};
use crate::tray::{AnyTrays, Trays};

/// The kind of a pool.
pub(crate) trait Kind: Sized + 'static {
    type Manager: LocalManager;
    type Lease: From<Box<Pooled<Self>>>;
    /// A counted reference to the pool.
    type Ref: Clone + Deref<Target = Shared<Self>>;
    type Weak: Clone;
    /// The lock around the ledger.
    type Lock: From<PoolLedger<Self>>;
    type Guard<'a>: DerefMut<Target = PoolLedger<Self>>;
    type Trays: AnyTrays<Box<Pooled<Self>>>;
    type Hook;
    type Answer<'a>: Future<Output = bool>;
    /// A piece of work under way.
    type Job: Future<Output = ()> + Unpin;
    /// The parts that only pools of this kind have.
    type Own;

    fn lock(lock: &Self::Lock) -> Self::Guard<'_>;
    fn downgrade(pool: &PoolRef<Self>) -> Self::Weak;
    fn upgrade(pool: &Self::Weak) -> Option<PoolRef<Self>>;

    /// Calls a hook.
    fn ask<'a>(hook: &'a Self::Hook, resource: &'a mut ResourceOf<Self>) -> Self::Answer<'a>;

    /// Lays a resource back on its tray. Returns since when it was out; or the resource, if it has
    /// to go to the ledger.
    fn lay_back(pooled: Box<Pooled<Self>>, now: Moment) -> Result<Moment, Box<Pooled<Self>>>;

    /// Where a plain function carries out its orders. It may be called from anywhere.
    fn here() -> Place;

    /// Does this piece of work in a task of its own. Returns whether that was possible.
    fn start_work(pool: &PoolRef<Self>, work: PoolWork<Self>) -> bool;

    /// The future that does this piece of work.
    fn job(pool: &PoolRef<Self>, work: PoolWork<Self>) -> Self::Job;

    /// Runs a job in a task of its own. Returns it if no task can be started here.
    fn start(job: Self::Job) -> Result<(), Self::Job>;

    /// Goes on with a job that a caller has dropped. Called by a destructor.
    fn go_on(pool: &PoolRef<Self>, job: Self::Job);

    /// Starts the upkeep task. Returns whether that was possible.
    fn start_upkeep(watch: Watch<Self>) -> bool;

    /// Returns whether waiters need timers of their own, because no alarm can wake them.
    fn needs_timers(pool: &Shared<Self>) -> bool;

    /// Sets the alarm, if there is one.
    fn set_alarm(pool: &PoolRef<Self>, at: Moment);

    /// Returns whether the alarm was set by the process that this one was forked from.
    fn has_lost_alarm(pool: &Shared<Self>) -> bool;

    /// The last reference is gone.
    fn ended(pool: &Shared<Self>);
}

/// The resource of a pool of this kind.
pub(crate) type ResourceOf<K> = <<K as Kind>::Manager as LocalManager>::Resource;

/// The error of its manager.
pub(crate) type ErrorOf<K> = <<K as Kind>::Manager as LocalManager>::Error;

/// A pool that many threads share.
pub(crate) struct Threads<M>(M);

/// The parts of a pool that many threads share.
pub(crate) struct OfThreads<M: Manager + 'static> {
    pub(crate) alarm: Alarming,
    /// Its number in the registry.
    pub(crate) number: u64,
    /// The part that is kept apart.
    pub(crate) annex: Option<Pool<M>>,
}

impl<M: Manager + 'static> Kind for Threads<M> {
    type Manager = M;
    type Lease = Lease<M>;
    type Ref = Arc<Shared<Self>>;
    type Weak = Weak<Shared<Self>>;
    type Lock = CachePadded<Mutex<PoolLedger<Self>>>;
    type Guard<'a> = MutexGuard<'a, PoolLedger<Self>>;
    type Trays = Trays<Box<Pooled<Self>>>;
    type Hook = Hook<M::Resource>;
    type Answer<'a> = Answer<'a>;
    type Job = Pin<Box<dyn Future<Output = ()> + Send>>;
    type Own = OfThreads<M>;

    /// Only a bug of ours could poison it, and then the ledger is better than none.
    #[inline]
    fn lock(lock: &Self::Lock) -> Self::Guard<'_> {
        lock.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn downgrade(pool: &PoolRef<Self>) -> Self::Weak {
        Arc::downgrade(&pool.0)
    }

    fn upgrade(pool: &Self::Weak) -> Option<PoolRef<Self>> {
        pool.upgrade().map(PoolRef)
    }

    fn ask<'a>(hook: &'a Self::Hook, resource: &'a mut M::Resource) -> Answer<'a> {
        hook(resource)
    }

    /// The reference to the pool is laid on the tray, too.
    #[inline]
    fn lay_back(pooled: Box<Pooled<Self>>, now: Moment) -> Result<Moment, Box<Pooled<Self>>> {
        match &pooled.tray {
            Some(place) => place.tray.lay_back(pooled.slot, pooled, now),
            None => Err(pooled),
        }
    }

    fn here() -> Place {
        if rt::is_present() {
            Place::Task
        } else {
            Place::Drop
        }
    }

    fn start_work(pool: &PoolRef<Self>, work: PoolWork<Self>) -> bool {
        rt::spawn(driver::run(pool, work));
        true
    }

    fn job(pool: &PoolRef<Self>, work: PoolWork<Self>) -> Self::Job {
        Box::pin(driver::run(pool, work))
    }

    fn start(job: Self::Job) -> Result<(), Self::Job> {
        rt::spawn(job);
        Ok(())
    }

    fn go_on(_: &PoolRef<Self>, job: Self::Job) {
        rt::spawn(job);
    }

    fn start_upkeep(watch: Watch<Self>) -> bool {
        rt::spawn(upkeep_task::run(watch));
        true
    }

    /// The alarm knows the real time only, and its thread may have failed to start.
    #[inline]
    fn needs_timers(pool: &Shared<Self>) -> bool {
        pool.clock.is_paused() || pool.own.alarm.is_missing()
    }

    fn set_alarm(pool: &PoolRef<Self>, at: Moment) {
        if !pool.clock.is_paused() {
            pool.own.alarm.set(at, &pool.0);
        }
    }

    fn has_lost_alarm(pool: &Shared<Self>) -> bool {
        pool.own.alarm.has_forked()
    }

    fn ended(pool: &Shared<Self>) {
        if pool.ledger().was_alarm_set() {
            alarm::forget(pool);
        }
        registry::leave(pool.own.number);
    }
}
