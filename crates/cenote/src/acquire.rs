//! The way in, for a caller: ask the ledger, and if need be wait in line, by a future or by a thread.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::error::{AcquireError, TimedOut};
use crate::lease::Lease;
use crate::ledger::{Answer, Asker, Claim, Grant, HELD_UP_AFTER, Report, Ticket};
use crate::loan::Loan;
use crate::manager::Manager;
use crate::observer::{Acquired, NestedAcquire, TimeoutRaised};
use crate::rt::{self, Owner};
use crate::shared::{Place, Shared};
use crate::status::{Holder, HolderGroup};
use crate::sync::thread::{self, Thread};
use crate::tray::TrayRef;
use crate::{error::OpenError, upkeep};

/// What an acquire of this pool comes to.
pub(crate) type Acquire<M> = Result<Lease<M>, AcquireError<<M as Manager>::Error>>;

type Failed<M> = OpenError<<M as Manager>::Error>;

/// How long a caller is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    For(Option<Duration>),
    Until(Instant),
}

impl Patience {
    fn deadline(self, now: Instant) -> Option<Instant> {
        match self {
            // What lies beyond the end of time is for ever.
            Self::For(limit) => limit.and_then(|limit| now.checked_add(limit)),
            Self::Until(deadline) => Some(deadline),
        }
    }
}

/// Waits as a future, if need be.
#[inline]
pub(crate) async fn acquire<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquire<M> {
    match by_tray(shared, site) {
        Some(lease) => Ok(lease),
        None => by_book(shared, site, patience).await,
    }
}

/// Asks the ledger, and waits in line.
async fn by_book<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    site: &'static Location<'static>,
    patience: Patience,
) -> Acquire<M> {
    let asker = Asker {
        site,
        owner: Owner::of_task(),
    };
    let now = rt::now();
    let asked = poll_fn(|context| Poll::Ready(ask(shared, asker, context.waker(), now))).await;
    let mut turn = match asked {
        Ok(turn) => turn,
        Err(done) => return done,
    };
    let deadline = patience.deadline(now);
    let mut timer = pin!(rt::sleep_until(Some(next_look(deadline, now))));
    // The ledger was asked just now: there is no need to ask it again before somebody calls.
    let mut called = false;
    poll_fn(|context| {
        if called {
            if let Poll::Ready(acquired) = turn.look(context.waker()) {
                return Poll::Ready(acquired);
            }
        }
        called = true;
        if is_over(deadline, now) {
            return Poll::Ready(turn.time_out());
        }
        while timer.as_mut().poll(context).is_ready() {
            let now = rt::now();
            if is_over(deadline, now) {
                return Poll::Ready(turn.time_out());
            }
            if let Poll::Ready(acquired) = turn.look(context.waker()) {
                return Poll::Ready(acquired);
            }
            timer.set(rt::sleep_until(Some(next_look(deadline, now))));
        }
        Poll::Pending
    })
    .await
}

fn is_over(deadline: Option<Instant>, now: Instant) -> bool {
    deadline.is_some_and(|deadline| deadline <= now)
}

/// Whoever waits looks again from time to time, in case that something is held up.
fn next_look(deadline: Option<Instant>, now: Instant) -> Instant {
    let look = now + HELD_UP_AFTER;
    deadline.map_or(look, |deadline| deadline.min(look))
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
    let asker = Asker {
        site,
        owner: Owner::of_task().or_else(|| Some(Owner::of_thread())),
    };
    let now = rt::now();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut turn = match ask(shared, asker, &waker, now) {
        Ok(turn) => turn,
        Err(done) => return done,
    };
    let deadline = patience.deadline(now);
    loop {
        let now = rt::now();
        if is_over(deadline, now) {
            return turn.time_out();
        }
        thread::park_timeout(next_look(deadline, now) - now);
        if let Poll::Ready(acquired) = turn.look(&waker) {
            return acquired;
        }
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
        let (mut answer, orders) = book.try_request(asker, now);
        let grant = answer.as_mut().ok().and_then(Option::as_mut);
        let tray = grant.and_then(|grant| set_aside(shared, grant, asker, now));
        (answer, tray, orders)
    };
    shared.carry_out(orders, place);
    match answer {
        Ok(grant) => Ok(grant.map(|grant| lend(shared, grant, tray, site))),
        Err(refusal) => Err(shared.refused(refusal)),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Asks the ledger: a turn in line, or the end already.
fn ask<'a, M: Manager>(
    shared: &'a Arc<Shared<M>>,
    asker: Asker,
    waker: &Waker,
    now: Instant,
) -> Result<Turn<'a, M>, Acquire<M>> {
    upkeep::start(shared);
    let (answer, tray, orders) = {
        let mut book = shared.lock_to_ask(now);
        let (mut answer, orders) = book.request(asker, waker, now);
        let tray = match &mut answer {
            Answer::Granted(grant) => set_aside(shared, grant, asker, now),
            Answer::Wait { .. } | Answer::Refused(_) => None,
        };
        (answer, tray, orders)
    };
    let (turn, nested) = match answer {
        Answer::Wait { ticket, nested } => (
            Ok(Turn {
                shared,
                ticket: Some(ticket),
                site: asker.site,
            }),
            nested,
        ),
        Answer::Granted(grant) => (Err(Ok(lend(shared, grant, tray, asker.site))), None),
        Answer::Refused(refusal) => (Err(Err(shared.refused(refusal))), None),
    };
    if let Some(holders) = nested {
        raise_nested(shared, asker.site, &holders);
    }
    shared.carry_out(orders, Place::Task);
    turn
}

fn raise_nested<M: Manager + 'static>(
    shared: &Shared<M>,
    site: &'static Location<'static>,
    holders: &[Holder],
) {
    let event = NestedAcquire {
        pool: &shared.name,
        site,
        holders,
    };
    shared
        .observers
        .tell(|observer| observer.nested_acquire(&event));
}

/// Opens the tray of a slot that the ledger has set aside. Under the book's lock.
fn set_aside<M: Manager>(
    shared: &Shared<M>,
    grant: &mut Grant<Box<Loan<M>>>,
    asker: Asker,
    now: Instant,
) -> Option<TrayRef> {
    let terms = grant.terms.take()?;
    let Shared { trays, clock, .. } = shared;
    clock.doubt();
    Some(trays.open(grant.slot, terms, asker, grant.uses, clock, now))
}

/// Takes what lies ready, if anything does: nobody waits, and the book is not opened.
#[inline]
fn by_tray<M: Manager>(shared: &Shared<M>, site: &'static Location<'static>) -> Option<Lease<M>> {
    if !shared.bell.is_answered() {
        return None;
    }
    let asker = Asker {
        site,
        owner: Some(Owner::of_holder()),
    };
    let now = shared.clock.now();
    let (mut loan, uses) = shared.trays.take::<Loan<M>>(asker, now)?;
    loan.taken(uses, asker.site);
    if shared.observers.any() {
        let id = loan.lent().id;
        tell_acquired(shared, id, Duration::ZERO, asker.site);
    }
    Some(Lease::new(loan))
}

fn lend<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    mut grant: Grant<Box<Loan<M>>>,
    tray: Option<TrayRef>,
    site: &'static Location<'static>,
) -> Lease<M> {
    let (id, waited) = (grant.id, grant.waited);
    let nested = grant.nested.take();
    let lease = Lease::new(Loan::granted(shared, grant, tray, site));
    tell_acquired(shared, id, waited, site);
    if let Some(holders) = nested {
        raise_nested(shared, site, &holders);
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

/// A place in line. Dropped before its end, it passes on what it was about to get.
struct Turn<'a, M: Manager + 'static> {
    shared: &'a Arc<Shared<M>>,
    ticket: Option<Ticket>,
    site: &'static Location<'static>,
}

impl<M: Manager + 'static> Turn<'_, M> {
    /// Is it served by now? And does somebody keep the pool up?
    fn look(&mut self, waker: &Waker) -> Poll<Acquire<M>> {
        upkeep::start(self.shared);
        let now = rt::now();
        let ticket = self.ticket.expect("bug: a turn ends once");
        let (claim, orders) = self.shared.lock().claim(ticket, waker, now);
        let acquired = claim.map(|claim| self.hear(claim));
        self.shared.carry_out(orders, Place::Task);
        acquired
    }

    fn time_out(&mut self) -> Acquire<M> {
        let now = rt::now();
        let ticket = self.ticket.expect("bug: a turn ends once");
        let (told, orders) = self.shared.lock().time_out(ticket, now);
        let acquired = match told {
            Ok(claim) => self.hear(claim),
            Err(report) => Err(self.timed_out(*report)),
        };
        self.shared.carry_out(orders, Place::Task);
        acquired
    }

    /// The end of the turn. A lease is made of the grant before anything else happens, so that it cannot be lost.
    fn hear(&mut self, claim: Claim<Box<Loan<M>>, Failed<M>>) -> Acquire<M> {
        self.ticket = None;
        match claim {
            Ok(grant) => Ok(lend(self.shared, grant, None, self.site)),
            Err(refusal) => Err(self.shared.refused(refusal)),
        }
    }

    fn timed_out(&mut self, report: Report<Failed<M>>) -> AcquireError<M::Error> {
        self.ticket = None;
        let Report {
            waited,
            phase,
            status,
            holders,
            nested,
            last_failure,
        } = report;
        let event = TimeoutRaised {
            pool: &self.shared.name,
            site: self.site,
            waited,
            status: &status,
        };
        self.shared
            .observers
            .tell(|observer| observer.timed_out(&event));
        AcquireError::TimedOut(Box::new(TimedOut {
            pool: Arc::clone(&self.shared.name),
            waited,
            phase,
            holders: HolderGroup::of(&holders),
            status,
            nested,
            last_open_error: last_failure,
        }))
    }
}

impl<M: Manager + 'static> Drop for Turn<'_, M> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let orders = self.shared.lock().withdraw(ticket, rt::now());
            self.shared.carry_out(orders, Place::Drop);
        }
    }
}
