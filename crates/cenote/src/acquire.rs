//! The ways to acquire: from a tray, or by the ledger; as a future, as a blocked thread, or without waiting.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::error::AcquireError;
use crate::lease::Lease;
use crate::ledger::{Asker, Grant, Orders};
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::Acquired;
use crate::pooled::{Pooled, TrayPlace};
use crate::rt::{self, Owner};
use crate::shared::{Book, Place, Shared};
use crate::sync::thread::{self, Thread};
use crate::upkeep;
use crate::waiting::Waiting;

/// The result of an acquire.
pub(crate) type Acquire<M> = Result<Lease<M>, AcquireError<<M as Manager>::Error>>;

/// How long a caller is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// As long as the pool's settings say.
    Usual,
    For(Option<Duration>),
    Until(Moment),
}

/// Waits as a future.
#[inline]
pub(crate) fn acquire<'a, M: Manager + 'static>(
    shared: &'a Arc<Shared<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquiring<'a, M> {
    Acquiring(Waiting::new(shared, site, patience))
}

/// An acquire under way.
#[must_use = "nothing is acquired unless it is awaited"]
pub(crate) struct Acquiring<'a, M: Manager + 'static>(Waiting<'a, M>);

impl<M: Manager + 'static> Future for Acquiring<'_, M> {
    type Output = Acquire<M>;

    // Where it is not inlined, the result is moved once more, and that is a tenth of a trip.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acquire<M>> {
        let waiting = &mut self.get_mut().0;
        if waiting.is_new() {
            if let Some(lease) = by_tray(waiting.shared, waiting.site) {
                return Poll::Ready(Ok(lease));
            }
        }
        by_ledger(waiting, context)
    }
}

#[inline(never)]
fn by_ledger<M: Manager>(
    waiting: &mut Waiting<'_, M>,
    context: &mut Context<'_>,
) -> Poll<Acquire<M>> {
    loop {
        let acquired = waiting.poll(Owner::of_task, context.waker());
        if acquired.is_ready() || waiting.sleeps(context) {
            return acquired;
        }
    }
}

/// Waits as a thread.
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
            if let Poll::Ready(acquired) = waiting.poll(owner, &waker) {
                return acquired;
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

/// Never waits.
pub(crate) fn try_acquire<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    site: &'static Location<'static>,
) -> Result<Option<Lease<M>>, AcquireError<M::Error>> {
    let place = Place::here();
    if place == Place::Task {
        upkeep::start(shared);
    }
    if let Some(lease) = by_tray(shared, site) {
        return Ok(Some(lease));
    }
    let asker = Asker {
        site,
        owner: Owner::of_task(),
    };
    loop {
        let now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let (answer, tray, overdue) = {
            let mut ledger = shared.ledger_for_request(now);
            let answer = ledger.try_request(asker, now, &mut orders);
            let tray = match &answer {
                Ok(Some(grant)) => put_on_tray(shared, &mut ledger, grant, asker, now, &mut orders),
                Ok(None) | Err(_) => None,
            };
            (answer, tray, ledger.is_upkeep_overdue(now))
        };
        shared.carry_out(&mut orders, place);
        if overdue && place == Place::Task {
            upkeep::take_over(shared);
        }
        match answer {
            Err(refusal) => return Err(shared.refused(refusal, site)),
            Ok(None) => return Ok(None),
            Ok(Some(grant)) => {
                if let Some(lease) = lend(shared, grant, tray, site, None) {
                    return Ok(Some(lease));
                }
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Puts a slot that was lent to a caller which did not wait on a tray, if it may be. Under the ledger's lock.
pub(crate) fn put_on_tray<M: Manager>(
    shared: &Shared<M>,
    ledger: &mut Book<M>,
    grant: &Grant<Box<Pooled<M>>>,
    asker: Asker,
    now: Moment,
    orders: &mut Orders<Box<Pooled<M>>>,
) -> Option<TrayPlace<M>> {
    let number = ledger.find_tray(grant.slot)?;
    shared.clock.notice_pause();
    if ledger.is_tray_taken(number) {
        shared.take_off(ledger, number);
    }
    let terms = ledger.put_on_tray(grant.slot, number, now, orders);
    let trays = &shared.trays;
    let tray = trays.open(number, grant.slot, terms, asker, grant.uses, now);
    Some(TrayPlace { number, tray })
}

/// Takes a resource from a tray, if one lies ready: no waiter is queued, and the ledger is not asked.
#[inline(always)]
fn by_tray<M: Manager>(shared: &Shared<M>, site: &'static Location<'static>) -> Option<Lease<M>> {
    if !shared.trays.any_open() {
        return None;
    }
    loop {
        let now = shared.clock.coarse_now();
        let (mut pooled, uses) = shared.trays.take(site, now)?;
        pooled.taken(uses, site);
        if pooled.is_dead() {
            pooled.bury();
            continue;
        }
        if shared.observers.any() {
            tell_acquired(shared, pooled.id, Duration::ZERO, site);
        }
        return Some(Lease::new(pooled));
    }
}

/// Makes a lease of a grant, with `since` for a caller that waited. `None`: the resource turned out to be dead, and is closed.
#[inline]
pub(crate) fn lend<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    grant: Grant<Box<Pooled<M>>>,
    tray: Option<TrayPlace<M>>,
    site: &'static Location<'static>,
    since: Option<Moment>,
) -> Option<Lease<M>> {
    let fresh = grant.fresh;
    let mut pooled = Pooled::granted(shared, grant, tray, site);
    if !fresh && pooled.is_dead() {
        pooled.bury();
        return None;
    }
    let id = pooled.id;
    let lease = Lease::new(pooled);
    if shared.observers.any() {
        let now = shared.clock.exact_now();
        let waited = since.map(|since| now.saturating_duration_since(since));
        tell_acquired(shared, id, waited.unwrap_or_default(), site);
    }
    Some(lease)
}

fn tell_acquired<M: Manager + 'static>(
    shared: &Shared<M>,
    id: u64,
    waited: Duration,
    site: &'static Location<'static>,
) {
    let event = Acquired {
        pool: &shared.name,
        id,
        waited,
        site,
    };
    shared.observers.tell(|observer| observer.acquired(&event));
}
