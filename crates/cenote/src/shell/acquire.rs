//! The ways to acquire: from a tray, or by the ledger; as a future, as a blocked thread, or without
//! waiting.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::kind::{ErrorOf, Kind, Threads};
use super::pooled::{Pooled, TrayPlace};
use super::shared::{PoolLedger, PoolOrders, PoolRef, Shared};
use super::waiting::Waiting;
use crate::error::AcquireError;
use crate::lease::Lease;
use crate::ledger::{Asker, Manner, SlotNo};
use crate::manager::Manager;
use crate::permit::Permit;
use crate::rt::sync::thread::{self, Thread};
use crate::rt::{self, Owner};
use crate::time::Moment;
use crate::tray::AnyTrays;

/// The result of an acquire.
pub(crate) type Acquire<M> = Result<Lease<M>, AcquireError<<M as Manager>::Error>>;

/// The same for a pool of any kind.
pub(crate) type Acquired<K> = Result<<K as Kind>::Lease, AcquireError<ErrorOf<K>>>;

/// The end of a wait. The error is in a box, so that this fits into two registers.
pub(crate) enum Outcome<K: Kind> {
    Lease(K::Lease),
    /// For a caller that reserves.
    Place,
    Failed(Box<AcquireError<ErrorOf<K>>>),
}

impl<K: Kind> Outcome<K> {
    /// The outcome for a caller that acquires.
    #[inline]
    pub(crate) fn acquired(self) -> Acquired<K> {
        match self {
            Self::Lease(lease) => Ok(lease),
            Self::Place => unreachable!("bug: a caller that acquires got a place"),
            Self::Failed(error) => Err(*error),
        }
    }
}

impl<M: Manager + 'static> Outcome<Threads<M>> {
    /// The outcome for a caller that reserves.
    pub(crate) fn reserved(self, shared: &PoolRef<Threads<M>>) -> Reserve<M> {
        match self {
            Self::Lease(_) => unreachable!("bug: a caller that reserves got a lease"),
            Self::Place => Ok(Permit::new(shared)),
            Self::Failed(error) => Err(*error),
        }
    }
}

/// The result of a reservation.
pub(crate) type Reserve<M> = Result<Permit<M>, AcquireError<<M as Manager>::Error>>;

/// How long a caller is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// As long as the pool's settings say.
    Usual,
    For(Option<Duration>),
    Until(Moment),
}

/// Acquires as a future.
impl<K: Kind> Future for Waiting<'_, K> {
    type Output = Acquired<K>;

    // Inlined, because moving the result once more would take a tenth of the time of a trip.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acquired<K>> {
        let waiting = self.get_mut();
        if waiting.is_new() {
            if let Some(lease) = by_tray(waiting.shared, waiting.site) {
                return Poll::Ready(Ok(lease));
            }
        }
        by_ledger(waiting, context).map(Outcome::acquired)
    }
}

/// Asks the ledger, without a look at the trays.
#[inline(never)]
pub(crate) fn by_ledger<K: Kind>(
    waiting: &mut Waiting<'_, K>,
    context: &mut Context<'_>,
) -> Poll<Outcome<K>> {
    loop {
        let acquired = waiting.ask_or_look(Owner::of_task, context.waker());
        if acquired.is_ready() || waiting.sleeps(context) {
            return acquired;
        }
    }
}

/// Acquires on a thread that blocks. It queues at once where it may: the open that a mere try
/// begins has no waiter, so its error would be lost.
pub(crate) fn acquire_blocking<M: Manager + 'static>(
    shared: &PoolRef<Threads<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquire<M> {
    if let Some(lease) = by_tray(shared, site) {
        return Ok(lease);
    }
    let blocked = rt::block(|| {
        let owner = || Owner::of_task().or_else(|| Some(Owner::of_thread()));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut waiting = Waiting::new(shared, site, patience);
        loop {
            if let Poll::Ready(acquired) = waiting.ask_or_look(owner, &waker) {
                return acquired.acquired();
            }
            let now = shared.clock.exact_now();
            let pause = waiting.next_look(now).saturating_duration_since(now);
            thread::park_timeout(pause);
        }
    });
    blocked.unwrap_or_else(|| {
        let pool = Arc::clone(&shared.name);
        let refusal = AcquireError::BlockingInRuntime { pool };
        try_acquire(shared, site)?.ok_or(refusal)
    })
}

/// Acquires without waiting.
pub(crate) fn try_acquire<K: Kind>(
    shared: &PoolRef<K>,
    site: &'static Location<'static>,
) -> Result<Option<K::Lease>, AcquireError<ErrorOf<K>>> {
    match by_tray(shared, site) {
        Some(lease) => Ok(Some(lease)),
        None => {
            let outcome = Waiting::new(shared, site, Patience::Usual).try_now();
            outcome.map(Outcome::acquired).transpose()
        }
    }
}

/// The end of a wait that is never in the queue. `None`: the caller would have been queued.
pub(crate) async fn or_none<K: Kind>(
    waiting: Waiting<'_, K>,
) -> Result<Option<K::Lease>, AcquireError<ErrorOf<K>>> {
    match waiting.await {
        Ok(lease) => Ok(Some(lease)),
        Err(AcquireError::Rejected { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Puts a slot that was lent to a caller which did not wait on a tray, if it may be. Under the
/// ledger's lock.
pub(crate) fn put_on_tray<K: Kind>(
    shared: &Shared<K>,
    ledger: &mut PoolLedger<K>,
    slot: SlotNo,
    asker: &Asker,
    now: Moment,
    orders: &mut PoolOrders<K>,
) -> Option<TrayPlace<K>> {
    let number = ledger.find_tray(slot)?;
    shared.clock.notice_pause();
    if ledger.is_tray_taken(number) {
        shared.take_off(ledger, number);
    }
    let on_tray = ledger.put_on_tray(slot, number, *asker, now, orders);
    let tray = shared.trays.open(number, on_tray);
    Some(TrayPlace { number, tray })
}

/// Takes a resource from a tray, if one lies ready there. The ledger is not asked.
#[inline(always)]
fn by_tray<K: Kind>(shared: &PoolRef<K>, site: &'static Location<'static>) -> Option<K::Lease> {
    let now = || shared.clock.coarse_now();
    let (mut pooled, uses) = shared.trays.take(site, now)?;
    pooled.taken(uses, site);
    if let Some(fault) = pooled.fault() {
        // The ledger finds another one, so that no loop is a part of every trip.
        pooled.come_back(fault, Manner::Dropped);
        return None;
    }
    if shared.observers.any() {
        pooled.tell_taken();
    }
    Some(pooled.into())
}

/// Makes a lease of a grant, with `since` for a caller that waited. `None`: the resource must
/// not be lent, and the ledger has it back.
#[inline]
pub(crate) fn lend<K: Kind>(
    shared: &PoolRef<K>,
    mut pooled: Box<Pooled<K>>,
    tray: Option<TrayPlace<K>>,
    site: &'static Location<'static>,
    since: Option<Moment>,
) -> Option<K::Lease> {
    pooled.granted(shared, tray, site);
    if let Some(fault) = pooled.fault_unless_fresh() {
        pooled.come_back(fault, Manner::Dropped);
        return None;
    }
    let id = pooled.id;
    let lease = K::Lease::from(pooled);
    if shared.observers.any() {
        let now = shared.clock.exact_now();
        let waited = since.map(|since| now.saturating_duration_since(since));
        shared
            .observers
            .acquired(id, waited.unwrap_or_default(), site);
    }
    Some(lease)
}
