//! A turn in line: asked for, looked at, and ended by a lease, an error, the end of its time, or a drop.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::acquire::{Patience, lend, set_aside};
use crate::error::{AcquireError, OpenError, TimedOut};
use crate::lease::Lease;
use crate::ledger::{
    Answer, Asker, Claim, Grant, HELD_UP_AFTER, MailboxRef, Orders, Report, Ticket,
};
use crate::loan::Loan;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::TimeoutRaised;
use crate::rt::{self, Owner};
use crate::shared::{Place, Shared};
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

type Joined<M> = (Ticket, MailboxRef<Box<Loan<M>>>);

/// A place in line, once it was asked for. Dropped before its end, it passes on what it was about to get.
pub(crate) struct Turn<'a, M: Manager + 'static> {
    pub(crate) shared: &'a Arc<Shared<M>>,
    pub(crate) site: &'static Location<'static>,
    patience: Patience,
    rouse: Rouse,
    place: Option<InLine<M>>,
}

struct InLine<M: Manager + 'static> {
    ticket: Ticket,
    /// What is granted comes here.
    mailbox: MailboxRef<Box<Loan<M>>>,
    owner: Option<Owner>,
    times: Times,
    /// Of one who is not woken by the alarm.
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

#[derive(Clone, Copy)]
struct Times {
    since: Moment,
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
        // Wakers are foreign code.
        let mut left = Some(waker.clone());
        let (answer, tray);
        {
            let mut book = shared.lock_to_ask(times.looked_at);
            if book.begins_line() && shared.clock.doubt() {
                times = self.read_clock();
            }
            let (now, look_at) = (times.looked_at, self.look_at(&times));
            if let Some(joined) = book.join_line(asker, &mut left, look_at, now, &mut orders) {
                drop(book);
                self.wait(joined, times, asker);
                if !orders.is_empty() {
                    shared.obey(&mut orders, Place::Task);
                }
                return Poll::Pending;
            }
            answer = book.request(asker, &mut left, look_at, now, &mut orders);
            tray = match &answer {
                Answer::Granted(grant) => set_aside(shared, &book, grant, asker, now),
                Answer::Wait { .. } | Answer::Refused(_) => None,
            };
        }
        let asked = match answer {
            Answer::Wait { ticket, mailbox } => {
                self.wait((ticket, mailbox), times, asker);
                Poll::Pending
            }
            Answer::Granted(grant) => Poll::Ready(Ok(lend(shared, grant, tray, asker, None))),
            Answer::Refused(refusal) => Poll::Ready(Err(shared.refused(refusal))),
        };
        shared.obey(&mut orders, Place::Task);
        asked
    }

    /// Now it is in line.
    #[inline]
    fn wait(&mut self, joined: Joined<M>, times: Times, asker: Asker) {
        let (ticket, mailbox) = joined;
        self.place = Some(InLine {
            ticket,
            mailbox,
            owner: asker.owner,
            times,
            timer: None,
        });
        if let Some(owner) = asker.owner {
            if self.shared.tags.may_hold(owner) {
                self.look_for_circle(asker, times.looked_at);
            }
        }
    }

    #[cold]
    fn look_for_circle(&self, asker: Asker, now: Moment) {
        let circle = self.shared.lock().closes_circle(asker, now);
        if let Some(circle) = circle {
            self.shared.tell_of(&circle);
        }
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
            since: looked_at,
            deadline,
            looked_at,
        }
    }

    fn place(&self) -> &InLine<M> {
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

    /// Is something in the mailbox? Then it is theirs, and the ledger need not be asked.
    #[inline]
    pub(crate) fn claim(&mut self) -> Option<Lease<M>> {
        let InLine {
            ticket, mailbox, ..
        } = self.place();
        let grant = mailbox.claim(ticket.serial)?;
        if !grant.resource.is_handed_over() {
            // Nobody is in a hurry, and the seat is free for the next.
            self.shared.lock_as_is().note_claim(*ticket, grant.slot);
        }
        Some(self.take(grant))
    }

    #[inline]
    fn take(&mut self, grant: Grant<Box<Loan<M>>>) -> Lease<M> {
        let InLine { owner, times, .. } = self.place();
        let (owner, since) = (*owner, times.since);
        let site = self.site;
        self.place = None;
        lend(self.shared, grant, None, Asker { site, owner }, Some(since))
    }

    /// Is it served by now? And does somebody keep the pool up?
    pub(crate) fn look(&mut self, waker: &Waker) -> Poll<Told<M>> {
        upkeep::start(self.shared);
        let now = self.shared.clock.now();
        let place = self.place.as_mut().expect("bug: a turn ends once");
        place.times.looked_at = now;
        let (ticket, times) = (place.ticket, place.times);
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

    /// Its time is over. What was granted at the last moment may still be on its way; then `waker` is woken.
    pub(crate) fn time_out(&mut self, waker: &Waker) -> Poll<Told<M>> {
        let now = self.shared.clock.exactly_now();
        let ticket = self.place().ticket;
        let (told, orders) = self.shared.lock().time_out(ticket, waker, now);
        let acquired = told.map(|told| match told {
            Ok(claim) => self.hear(claim),
            Err(report) => Err(Box::new(self.timed_out(report))),
        });
        self.shared.carry_out(orders, Place::Task);
        acquired
    }

    /// The end of the turn. A lease is made of the grant before anything else happens, so that it cannot be lost.
    #[inline]
    fn hear(&mut self, claim: Claim<Box<Loan<M>>, Failed<M>>) -> Told<M> {
        match claim {
            Ok(grant) => Ok(self.take(grant)),
            Err(refusal) => {
                self.place = None;
                Err(self.shared.refused(refusal))
            }
        }
    }

    #[cold]
    fn withdraw(&mut self) {
        let ticket = self.place().ticket;
        let orders = self.shared.lock().withdraw(ticket, rt::now());
        self.shared.carry_out(orders, Place::Drop);
    }

    #[cold]
    fn timed_out(&mut self, seen: Box<Report<Failed<M>>>) -> AcquireError<M::Error> {
        self.place = None;
        let event = TimeoutRaised {
            pool: &self.shared.name,
            site: self.site,
            waited: seen.waited,
            status: &seen.status,
        };
        self.shared
            .observers
            .tell(|observer| observer.timed_out(&event));
        AcquireError::TimedOut(TimedOut {
            pool: Arc::clone(&self.shared.name),
            seen,
        })
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
