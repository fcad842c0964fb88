//! The pool of a play: one that threads share, or one that belongs to the thread of the play. All
//! clients use either in the same way.
//!
//! A play runs on one thread from its beginning to its end. So the parts of a local pool may be
//! kept where the simulation wants values that are `Send`, by a wrapper that checks the thread.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cenote::breaker::BreakerState;
use cenote::local::{LocalLease, LocalPool, WeakLocalPool};
use cenote::{
    AcquireError, Config, ConfigError, Health, Holder, Lease, Leftover, Permit, Pool, Status,
    WarmError, WeakPool,
};
use send_wrapper::SendWrapper;
use tokio::task;

use super::backend::{SimManager, SimObserver, SimStrategy, Thing, may_acquire, may_release};
use super::plan::Kind;
use super::world::Sim;
use crate::backend::Fault;

#[derive(Clone, Debug)]
pub(super) enum SimPool {
    Threads(Pool<SimManager>),
    OneThread(SendWrapper<LocalPool<SimManager>>),
}

#[derive(Debug)]
pub(super) enum SimLease {
    Threads(Lease<SimManager>),
    OneThread(SendWrapper<LocalLease<SimManager>>),
}

#[derive(Debug)]
pub(super) enum SimWeak {
    Threads(WeakPool<SimManager>),
    OneThread(SendWrapper<WeakLocalPool<SimManager>>),
}

type Leased = Result<SimLease, AcquireError<Fault>>;

/// Sets what the plan has drawn, in a builder of either kind.
macro_rules! set {
    ($builder:ident, $sim:ident, $plan:ident) => {{
        let mut builder = $builder
            .config($plan.config.clone())
            .observer(Arc::new(SimObserver(Arc::clone($sim))))
            .seed($plan.seed);
        if $plan.before_acquire {
            builder = builder.before_acquire(may_acquire);
        }
        if $plan.before_release {
            builder = builder.before_release(may_release);
        }
        if let Some((failures, recover_after)) = $plan.strategy {
            builder = builder.breaker(SimStrategy {
                sim: Arc::clone($sim),
                failures,
                recover_after,
            });
        }
        builder
    }};
}

/// The same expression for both kinds of pools.
macro_rules! of_both {
    ($self:ident, $pool:ident => $call:expr) => {
        match $self {
            Self::Threads($pool) => $call,
            Self::OneThread($pool) => $call,
        }
    };
}

/// The same future for both kinds of pools.
macro_rules! await_both {
    ($self:ident, $pool:ident => $call:expr) => {
        match $self {
            Self::Threads($pool) => $call.await,
            Self::OneThread(pool) => {
                let $pool = LocalPool::clone(pool);
                OnOneThread::new(async move { $call.await }).await
            }
        }
    };
}

impl SimPool {
    pub(super) fn build(sim: &Arc<Sim>) -> Self {
        let (plan, manager) = (&sim.plan, SimManager(Arc::clone(sim)));
        match plan.kind {
            Kind::Threads => {
                let mut builder = Pool::builder(manager);
                builder = set!(builder, sim, plan);
                Self::Threads(builder.build().expect(VALID))
            }
            Kind::OneThread => {
                let mut builder = LocalPool::builder(manager);
                builder = set!(builder, sim, plan);
                Self::OneThread(SendWrapper::new(builder.build().expect(VALID)))
            }
        }
    }

    /// Starts a task where the pool can start its own.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        job: impl Future<Output = T> + Send + 'static,
    ) -> task::JoinHandle<T> {
        match self {
            Self::Threads(_) => tokio::spawn(job),
            Self::OneThread(_) => task::spawn_local(job),
        }
    }

    /// Lets a local pool start its tasks: until then, plain calls leave their work undone.
    pub(super) fn begin(&self) {
        if let Self::OneThread(pool) = self {
            let mut warming = Box::pin(pool.warm());
            let mut context = Context::from_waker(Waker::noop());
            let _ = warming.as_mut().poll(&mut context);
        }
    }

    pub(super) async fn acquire(&self) -> Leased {
        await_both!(self, pool => leased(pool.acquire()))
    }

    pub(super) async fn acquire_within(&self, limit: Duration) -> Leased {
        await_both!(self, pool => leased(pool.acquire_within(limit)))
    }

    pub(super) async fn acquire_by(&self, deadline: Instant) -> Leased {
        await_both!(self, pool => leased(pool.acquire_by(deadline)))
    }

    pub(super) async fn try_acquire_or_open(
        &self,
    ) -> Result<Option<SimLease>, AcquireError<Fault>> {
        await_both!(self, pool => async { Ok(pool.try_acquire_or_open().await?.map(Into::into)) })
    }

    /// Local pools have no permits.
    pub(super) async fn reserve_within(
        &self,
        limit: Option<Duration>,
    ) -> Result<Permit<SimManager>, AcquireError<Fault>> {
        match self {
            Self::Threads(pool) => pool.reserve_within(limit).await,
            Self::OneThread(_) => unreachable!("no plan leads to this call"),
        }
    }

    pub(super) fn try_acquire(&self) -> Result<Option<SimLease>, AcquireError<Fault>> {
        of_both!(self, pool => Ok(pool.try_acquire()?.map(Into::into)))
    }

    pub(super) async fn warm(&self) -> Result<(), WarmError<Fault>> {
        await_both!(self, pool => pool.warm())
    }

    pub(super) async fn close_within(&self, limit: Duration) -> Leftover {
        await_both!(self, pool => pool.close_within(limit))
    }

    pub(super) fn downgrade(&self) -> SimWeak {
        match self {
            Self::Threads(pool) => SimWeak::Threads(pool.downgrade()),
            Self::OneThread(pool) => SimWeak::OneThread(SendWrapper::new(pool.downgrade())),
        }
    }

    pub(super) fn status(&self) -> Status {
        of_both!(self, pool => pool.status())
    }

    pub(super) fn health(&self) -> Health {
        of_both!(self, pool => pool.health())
    }

    pub(super) fn leases(&self) -> Vec<Holder> {
        of_both!(self, pool => pool.leases())
    }

    pub(super) fn config(&self) -> Config {
        of_both!(self, pool => pool.config())
    }

    pub(super) fn breaker_state(&self) -> BreakerState {
        of_both!(self, pool => pool.breaker().state())
    }

    pub(super) fn trip(&self) {
        of_both!(self, pool => pool.breaker().trip());
    }

    pub(super) fn reset(&self) {
        of_both!(self, pool => pool.breaker().reset());
    }

    pub(super) fn probe(&self) {
        of_both!(self, pool => pool.breaker().probe());
    }

    pub(super) fn suspend(&self) {
        of_both!(self, pool => pool.suspend());
    }

    pub(super) fn resume(&self) {
        of_both!(self, pool => pool.resume());
    }

    pub(super) fn pause_upkeep(&self) {
        of_both!(self, pool => pool.pause_upkeep());
    }

    pub(super) fn resume_upkeep(&self) {
        of_both!(self, pool => pool.resume_upkeep());
    }

    pub(super) fn close(&self) {
        of_both!(self, pool => pool.close());
    }

    pub(super) fn is_closed(&self) -> bool {
        of_both!(self, pool => pool.is_closed())
    }

    pub(super) fn resize(&self, to: usize) -> Result<(), ConfigError> {
        of_both!(self, pool => pool.resize(to))
    }

    pub(super) fn invalidate(&self) {
        of_both!(self, pool => pool.invalidate());
    }

    pub(super) fn invalidate_over(&self, over: Duration) {
        of_both!(self, pool => pool.invalidate_over(over));
    }

    pub(super) fn retain(&self, keep: impl FnMut(&mut Thing) -> bool) {
        of_both!(self, pool => pool.retain(keep));
    }

    pub(super) fn queued_wakers(&self) -> Vec<Waker> {
        of_both!(self, pool => pool.queued_wakers())
    }
}

const VALID: &str = "what the plan draws is valid";

impl SimWeak {
    pub(super) fn upgrade(&self) -> Option<SimPool> {
        match self {
            Self::Threads(pool) => pool.upgrade().map(SimPool::Threads),
            Self::OneThread(pool) => {
                let pool = pool.upgrade().map(SendWrapper::new);
                pool.map(SimPool::OneThread)
            }
        }
    }
}

impl SimLease {
    pub(super) fn uses(this: &Self) -> u64 {
        match this {
            Self::Threads(lease) => Lease::uses(lease),
            Self::OneThread(lease) => LocalLease::uses(lease),
        }
    }

    pub(super) fn age(this: &Self) -> Duration {
        match this {
            Self::Threads(lease) => Lease::age(lease),
            Self::OneThread(lease) => LocalLease::age(lease),
        }
    }

    pub(super) async fn release(this: Self) {
        match this {
            Self::Threads(lease) => Lease::release(lease).await,
            Self::OneThread(lease) => {
                OnOneThread::new(LocalLease::release(lease.take())).await;
            }
        }
    }

    pub(super) fn discard(this: Self) {
        match this {
            Self::Threads(lease) => Lease::discard(lease),
            Self::OneThread(lease) => LocalLease::discard(lease.take()),
        }
    }

    pub(super) fn detach(this: Self) -> Thing {
        match this {
            Self::Threads(lease) => Lease::detach(lease),
            Self::OneThread(lease) => LocalLease::detach(lease.take()),
        }
    }
}

impl Deref for SimLease {
    type Target = Thing;

    fn deref(&self) -> &Thing {
        of_both!(self, lease => lease)
    }
}

impl DerefMut for SimLease {
    fn deref_mut(&mut self) -> &mut Thing {
        of_both!(self, lease => lease)
    }
}

impl From<Lease<SimManager>> for SimLease {
    fn from(lease: Lease<SimManager>) -> Self {
        Self::Threads(lease)
    }
}

impl From<LocalLease<SimManager>> for SimLease {
    fn from(lease: LocalLease<SimManager>) -> Self {
        Self::OneThread(SendWrapper::new(lease))
    }
}

async fn leased<L: Into<SimLease>>(
    acquiring: impl Future<Output = Result<L, AcquireError<Fault>>>,
) -> Leased {
    acquiring.await.map(Into::into)
}

/// A future that is polled on one thread only.
struct OnOneThread<T>(SendWrapper<Pin<Box<dyn Future<Output = T>>>>);

impl<T> OnOneThread<T> {
    fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self(SendWrapper::new(Box::pin(future)))
    }
}

impl<T> Future for OnOneThread<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.0.as_mut().poll(context)
    }
}
