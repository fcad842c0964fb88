//! The ways to acquire: from a tray, or by the ledger; as a future, as a blocked thread, or without
//! waiting.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::pooled::{Pooled, TrayPlace};
use super::shared::{PoolLedger, PoolOrders, Shared};
use super::waiting::Waiting;
use crate::error::AcquireError;
use crate::lease::Lease;
use crate::ledger::{Asker, Manner, SlotNo};
use crate::manager::Manager;
use crate::permit::Permit;
use crate::rt::sync::thread::{self, Thread};
use crate::rt::{self, Owner};
use crate::time::Moment;

/// The result of an acquire.
pub(crate) type Acquire<M> = Result<Lease<M>, AcquireError<<M as Manager>::Error>>;

/// The end of a wait. The error is in a box, so that this fits into two registers.
pub(crate) enum Outcome<M: Manager + 'static> {
    Lease(Lease<M>),
    /// For a caller that reserves.
    Place,
    Failed(Box<AcquireError<M::Error>>),
}

impl<M: Manager + 'static> Outcome<M> {
    /// The outcome for a caller that acquires.
    #[inline]
    pub(crate) fn acquired(self) -> Acquire<M> {
        match self {
            Self::Lease(lease) => Ok(lease),
            Self::Place => unreachable!("bug: a caller that acquires got a place"),
            Self::Failed(error) => Err(*error),
        }
    }

    /// The outcome for a caller that reserves.
    pub(crate) fn reserved(self, shared: &Arc<Shared<M>>) -> Reserve<M> {
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
impl<M: Manager + 'static> Future for Waiting<'_, M> {
    type Output = Acquire<M>;

    // Inlined, because moving the result once more would take a tenth of the time of a trip.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acquire<M>> {
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
pub(crate) fn by_ledger<M: Manager>(
    waiting: &mut Waiting<'_, M>,
    context: &mut Context<'_>,
) -> Poll<Outcome<M>> {
    loop {
        let acquired = waiting.ask_or_look(Owner::of_task, context.waker());
        if acquired.is_ready() || waiting.sleeps(context) {
            return acquired;
        }
    }
}

/// Acquires on a thread that blocks.
pub(crate) fn acquire_blocking<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquire<M> {
    if let Some(lease) = try_acquire(shared, site)? {
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
        Err(AcquireError::BlockingInRuntime { pool })
    })
}

/// Acquires without waiting.
pub(crate) fn try_acquire<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    site: &'static Location<'static>,
) -> Result<Option<Lease<M>>, AcquireError<M::Error>> {
    match by_tray(shared, site) {
        Some(lease) => Ok(Some(lease)),
        None => {
            let outcome = Waiting::new(shared, site, Patience::Usual).try_now();
            outcome.map(Outcome::acquired).transpose()
        }
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
pub(crate) fn put_on_tray<M: Manager>(
    shared: &Shared<M>,
    ledger: &mut PoolLedger<M>,
    slot: SlotNo,
    asker: &Asker,
    now: Moment,
    orders: &mut PoolOrders<M>,
) -> Option<TrayPlace<M>> {
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
fn by_tray<M: Manager>(shared: &Shared<M>, site: &'static Location<'static>) -> Option<Lease<M>> {
    if !shared.trays.any_open() {
        return None;
    }
    loop {
        let now = shared.clock.coarse_now();
        let (mut pooled, uses) = shared.trays.take(site, now)?;
        pooled.taken(uses, site);
        if let Some(fault) = pooled.fault() {
            pooled.come_back(fault, Manner::Dropped);
            continue;
        }
        if shared.observers.any() {
            pooled.tell_taken();
        }
        return Some(Lease::new(pooled));
    }
}

/// Makes a lease of a grant, with `since` for a caller that waited. `None`: the resource must
/// not be lent, and the ledger has it back.
#[inline]
pub(crate) fn lend<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    mut pooled: Box<Pooled<M>>,
    tray: Option<TrayPlace<M>>,
    site: &'static Location<'static>,
    since: Option<Moment>,
) -> Option<Lease<M>> {
    pooled.granted(shared, tray, site);
    if let Some(fault) = pooled.fault_unless_fresh() {
        pooled.come_back(fault, Manner::Dropped);
        return None;
    }
    let id = pooled.id;
    let lease = Lease::new(pooled);
    if shared.observers.any() {
        let now = shared.clock.exact_now();
        let waited = since.map(|since| now.saturating_duration_since(since));
        shared
            .observers
            .acquired(id, waited.unwrap_or_default(), site);
    }
    Some(lease)
}
