//! The way in, for a caller: what lies ready, or a turn in line, by a future or by a thread.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::error::AcquireError;
use crate::lease::Lease;
use crate::ledger::{Asker, Grant, HELD_UP_AFTER, Mail};
use crate::loan::Loan;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::Acquired;
use crate::rt::{self, Owner};
use crate::shared::{Book, Place, Shared};
use crate::sync::thread::{self, Thread};
use crate::tray::TrayRef;
use crate::turn::{Rouse, Turn};
use crate::upkeep;

/// What an acquire of this pool comes to.
pub(crate) type Acquire<M> = Result<Lease<M>, AcquireError<<M as Manager>::Error>>;

/// How long a caller is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// As long as the pool's settings say.
    Usual,
    For(Option<Duration>),
    Until(Moment),
}

/// Waits as a future, if need be.
#[inline]
pub(crate) fn acquire<'a, M: Manager + 'static>(
    shared: &'a Arc<Shared<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquiring<'a, M> {
    Acquiring(Turn::new(shared, site, patience, Rouse::Alarm))
}

/// An acquire under way.
#[must_use = "nothing is acquired unless it is awaited"]
pub(crate) struct Acquiring<'a, M: Manager + 'static>(Turn<'a, M>);

impl<M: Manager + 'static> Future for Acquiring<'_, M> {
    type Output = Acquire<M>;

    // Where it is not, the result is moved once more, and that is a tenth of a trip.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acquire<M>> {
        let turn = &mut self.get_mut().0;
        if !turn.is_in_line() {
            if let Some(lease) = by_tray(turn.shared, turn.site) {
                return Poll::Ready(Ok(lease));
            }
        }
        by_book(turn, context)
    }
}

/// Asks the ledger, and waits in line.
#[inline(never)]
fn by_book<M: Manager>(turn: &mut Turn<'_, M>, context: &mut Context<'_>) -> Poll<Acquire<M>> {
    if !turn.is_in_line() {
        let told = turn.ask(Owner::of_task(), context.waker());
        if told.is_ready() {
            return told;
        }
        if turn.has_time() && turn.sleeps(context) {
            return Poll::Pending;
        }
    } else if let Some(mail) = turn.open_mail() {
        return Poll::Ready(match mail {
            Mail::Grant(grant) => Ok(turn.claim(grant)),
            Mail::TimeIsUp(over) => Err(turn.give_up(over)),
        });
    }
    loop {
        if let Some(now) = turn.over() {
            return turn.time_out(now, context.waker());
        }
        let told = turn.look(context.waker());
        if told.is_ready() {
            return told;
        }
        if turn.sleeps(context) {
            return Poll::Pending;
        }
    }
}

/// Waits as a thread.
pub(crate) fn acquire_blocking<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquire<M> {
    if let Some(lease) = by_tray(shared, site) {
        return Ok(lease);
    }
    let owner = Owner::of_task().or_else(|| Some(Owner::of_thread()));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut turn = Turn::new(shared, site, patience, Rouse::Themselves);
    let mut told = turn.ask(owner, &waker);
    loop {
        if let Poll::Ready(acquired) = told {
            return acquired;
        }
        let pause = match turn.over() {
            None => turn.next_look().saturating_duration_since(rt::now()),
            Some(now) => match turn.time_out(now, &waker) {
                Poll::Ready(acquired) => return acquired,
                // It is on its way.
                Poll::Pending => HELD_UP_AFTER,
            },
        };
        thread::park_timeout(pause);
        told = turn.look(&waker);
    }
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
    let now = rt::now();
    let (answer, tray, orders) = {
        let mut book = shared.lock_to_ask(now);
        let (answer, orders) = book.try_request(asker, now);
        let grant = answer.as_ref().ok().and_then(Option::as_ref);
        let tray = grant.and_then(|grant| set_aside(shared, &book, grant, asker, now));
        (answer, tray, orders)
    };
    shared.carry_out(orders, place);
    match answer {
        Ok(grant) => Ok(grant.map(|grant| lend(shared, grant, tray, asker, None))),
        Err(refusal) => Err(shared.refused(refusal, site)),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Opens the tray of a slot that the ledger has set aside. Under the book's lock.
pub(crate) fn set_aside<M: Manager>(
    shared: &Shared<M>,
    book: &Book<M>,
    grant: &Grant<Box<Loan<M>>>,
    asker: Asker,
    now: Moment,
) -> Option<TrayRef<Loan<M>>> {
    if !book.is_aside(grant.slot) {
        return None;
    }
    shared.clock.doubt();
    let terms = book.terms(grant.slot);
    Some(shared.trays.open(grant.slot, terms, asker, grant.uses, now))
}

/// Takes what lies ready, if anything does: nobody waits, and the book is not opened.
#[inline(always)]
fn by_tray<M: Manager>(shared: &Shared<M>, site: &'static Location<'static>) -> Option<Lease<M>> {
    if !shared.trays.any_open() {
        return None;
    }
    let now = shared.clock.glance();
    let (mut loan, uses) = shared.trays.take(site, now)?;
    loan.taken(uses, site);
    if shared.observers.any() {
        let id = loan.id;
        tell_acquired(shared, id, Duration::ZERO, site);
    }
    Some(Lease::new(loan))
}

/// With `since`, to one who waited.
#[inline]
pub(crate) fn lend<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    grant: Grant<Box<Loan<M>>>,
    tray: Option<TrayRef<Loan<M>>>,
    Asker { site, owner }: Asker,
    since: Option<Moment>,
) -> Lease<M> {
    if tray.is_none() {
        shared.tags.write(grant.slot, owner);
    }
    let loan = Loan::granted(shared, grant, tray, site);
    let id = loan.id;
    let lease = Lease::new(loan);
    if shared.observers.any() {
        let waited = since.map(|since| shared.clock.now().saturating_duration_since(since));
        tell_acquired(shared, id, waited.unwrap_or_default(), site);
    }
    lease
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
