//! A turn in line: asked for, looked at, and ended by a lease, an error, the end of its time, or a drop.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::acquire::{Patience, lend, raise_nested, set_aside};
use crate::error::{AcquireError, OpenError, TimedOut};
use crate::lease::Lease;
use crate::ledger::{Answer, Asker, Claim, HELD_UP_AFTER, Orders, Report, Ticket};
use crate::loan::Loan;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::TimeoutRaised;
use crate::rt::{self, Owner};
use crate::shared::{Place, Shared};
use crate::status::HolderGroup;
use crate::upkeep;

type Failed<M> = OpenError<<M as Manager>::Error>;

/// Who sees to it that one who waits looks again from time to time, in case that something is held up, and when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rouse {
    Alarm,
    /// They do, by a timer or by parking for a while.
    Themselves,
}

/// What a turn comes to. In a box, for it passes through many hands, and an error is large and rare.
pub(crate) type Told<M> = Result<Lease<M>, Box<AcquireError<<M as Manager>::Error>>>;

/// A place in line, once it was asked for. Dropped before its end, it passes on what it was about to get.
pub(crate) struct Turn<'a, M: Manager + 'static> {
    pub(crate) shared: &'a Arc<Shared<M>>,
    pub(crate) site: &'static Location<'static>,
    patience: Patience,
    rouse: Rouse,
    place: Option<InLine>,
}

struct InLine {
    ticket: Ticket,
    times: Times,
    /// Of one who is not woken by the alarm.
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

#[derive(Clone, Copy)]
struct Times {
    deadline: Moment,
    /// When the ledger was asked last.
    looked_at: Moment,
}

impl Times {
    /// When to look again.
    #[inline]
    fn next_look(&self) -> Moment {
        self.deadline.min(self.looked_at + HELD_UP_AFTER)
    }
}

impl<'a, M: Manager + 'static> Turn<'a, M> {
    #[inline]
    pub(crate) fn new(
        shared: &'a Arc<Shared<M>>,
        site: &'static Location<'static>,
        patience: Patience,
        rouse: Rouse,
    ) -> Self {
        Self {
            shared,
            site,
            patience,
            rouse,
            place: None,
        }
    }

    #[inline]
    pub(crate) fn is_in_line(&self) -> bool {
        self.place.is_some()
    }

    /// Asks the ledger: a place in line, or the end already.
    pub(crate) fn ask(&mut self, owner: Option<Owner>, waker: &Waker) -> Poll<Told<M>> {
        let Self { shared, site, .. } = *self;
        upkeep::start(shared);
        let asker = Asker { site, owner };
        let mut times = self.read_clock();
        let mut orders = Orders::default();
        let (answer, tray);
        {
            let mut book = shared.lock_to_ask(times.looked_at);
            if book.begins_line() && shared.clock.doubt() {
                times = self.read_clock();
            }
            let now = times.looked_at;
            answer = book.request(asker, waker, self.look_at(&times), now, &mut orders);
            tray = match &answer {
                Answer::Granted(grant) => set_aside(shared, &book, grant, asker, now),
                Answer::Wait { .. } | Answer::Refused(_) => None,
            };
        }
        let asked = match answer {
            Answer::Wait { ticket, nested } => {
                self.place = Some(InLine {
                    ticket,
                    times,
                    timer: None,
                });
                if let Some(holders) = nested {
                    raise_nested(shared, site, &holders);
                }
                Poll::Pending
            }
            Answer::Granted(grant) => Poll::Ready(Ok(lend(shared, grant, tray, site))),
            Answer::Refused(refusal) => Poll::Ready(Err(shared.refused(refusal))),
        };
        shared.obey(&mut orders, Place::Task);
        asked
    }

    fn read_clock(&mut self) -> Times {
        let Shared { clock, limits, .. } = &**self.shared;
        let looked_at = clock.now();
        let limit = match self.patience {
            Patience::Usual => limits.acquire_timeout,
            Patience::For(limit) => limit,
            Patience::Until(_) => None,
        };
        let deadline = match self.patience {
            Patience::Until(deadline) => deadline,
            _ => limit.map_or(Moment::NEVER, |limit| clock.end_of(limit, looked_at)),
        };
        // The alarm knows the real time only.
        if clock.is_turned() {
            self.rouse = Rouse::Themselves;
        }
        Times {
            deadline,
            looked_at,
        }
    }

    fn place(&self) -> &InLine {
        self.place.as_ref().expect("bug: a turn ends once")
    }

    /// Is its time over?
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        let times = &self.place().times;
        self.shared.clock.is_past(times.deadline, times.looked_at)
    }

    /// When to look again.
    pub(crate) fn next_look(&self) -> Moment {
        self.place().times.next_look()
    }

    /// May it sleep? Not if it must look again now. A future only.
    #[inline]
    pub(crate) fn sleeps(&mut self, context: &mut Context<'_>) -> bool {
        self.rouse == Rouse::Alarm || self.sleeps_by_timer(context)
    }

    #[cold]
    fn sleeps_by_timer(&mut self, context: &mut Context<'_>) -> bool {
        let until = self.next_look();
        let Some(place) = &mut self.place else {
            return false;
        };
        let timer = place
            .timer
            .get_or_insert_with(|| Box::pin(rt::sleep_until(Some(until))));
        let sleeps = timer.as_mut().poll(context).is_pending();
        if !sleeps {
            place.timer = None;
        }
        sleeps
    }

    /// When to be woken by the alarm.
    #[inline]
    fn look_at(&self, times: &Times) -> Option<Moment> {
        (self.rouse == Rouse::Alarm).then(|| times.next_look())
    }

    /// Is it served by now? And does somebody keep the pool up?
    pub(crate) fn look(&mut self, waker: &Waker) -> Poll<Told<M>> {
        upkeep::start(self.shared);
        let now = self.shared.clock.now();
        let place = self.place.as_mut().expect("bug: a turn ends once");
        place.times.looked_at = now;
        let InLine { ticket, times, .. } = *place;
        let look_at = self.look_at(&times);
        let mut orders = Orders::default();
        let claim = {
            let mut book = self.shared.lock();
            book.claim(ticket, waker, look_at, now, &mut orders)
        };
        let acquired = claim.map(|claim| self.hear(claim));
        self.shared.obey(&mut orders, Place::Task);
        acquired
    }

    pub(crate) fn time_out(&mut self) -> Told<M> {
        let now = rt::now();
        let ticket = self.place().ticket;
        let (told, orders) = self.shared.lock().time_out(ticket, now);
        let acquired = match told {
            Ok(claim) => self.hear(claim),
            Err(report) => Err(Box::new(self.timed_out(*report))),
        };
        self.shared.carry_out(orders, Place::Task);
        acquired
    }

    /// The end of the turn. A lease is made of the grant before anything else happens, so that it cannot be lost.
    #[inline]
    fn hear(&mut self, claim: Claim<Box<Loan<M>>, Failed<M>>) -> Told<M> {
        self.place = None;
        match claim {
            Ok(grant) => Ok(lend(self.shared, grant, None, self.site)),
            Err(refusal) => Err(self.shared.refused(refusal)),
        }
    }

    #[cold]
    fn withdraw(&mut self) {
        let ticket = self.place().ticket;
        let orders = self.shared.lock().withdraw(ticket, rt::now());
        self.shared.carry_out(orders, Place::Drop);
    }

    #[cold]
    fn timed_out(&mut self, report: Report<Failed<M>>) -> AcquireError<M::Error> {
        self.place = None;
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
    #[inline]
    fn drop(&mut self) {
        if self.place.is_some() {
            self.withdraw();
        }
    }
}
