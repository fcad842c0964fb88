//! A turn in line: asked for, looked at, and ended by a lease, an error, the end of its time, or a drop.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::acquire::{Acquire, Patience, lend, set_aside};
use crate::alarm;
use crate::error::{AcquireError, OpenError};
use crate::lease::Lease;
use crate::ledger::{
    Answer, Asker, Claim, Grant, HELD_UP_AFTER, Mail, MailboxRef, Orders, Ticket, TimeIsUp,
};
use crate::loan::Loan;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::rt::{self, Owner};
use crate::shared::{Book, Place, Shared};
use crate::sync::MutexGuard;
use crate::upkeep;

/// Who sees to it that one who waits looks again from time to time, in case that something is held up, and when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rouse {
    Alarm,
    /// They do, by a timer or by parking for a while.
    Themselves,
}

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
    pub(crate) fn ask(&mut self, owner: Option<Owner>, waker: &Waker) -> Poll<Acquire<M>> {
        let Self { shared, site, .. } = *self;
        upkeep::start(shared);
        let asker = Asker { site, owner };
        let mut times = self.read_clock();
        // Wakers are foreign code.
        let mut left = Some(waker.clone());
        let mut book = shared.lock_to_ask(times.looked_at);
        if book.begins_line() && shared.clock.doubt() {
            times = self.read_clock();
        }
        let (now, until) = (times.looked_at, self.until(&times));
        let Some(joined) = book.join_line(asker, &mut left, until, now) else {
            return self.request(book, left, times, asker);
        };
        drop(book);
        self.wait(joined.ticket, joined.mailbox, times, asker);
        if let Some(at) = joined.alarm {
            alarm::set(at, shared);
        }
        Poll::Pending
    }

    /// The same where there is more to be decided than a place in line.
    fn request(
        &mut self,
        mut book: MutexGuard<'_, Book<M>>,
        mut left: Option<Waker>,
        times: Times,
        asker: Asker,
    ) -> Poll<Acquire<M>> {
        let Self { shared, site, .. } = *self;
        let (now, until) = (times.looked_at, self.until(&times));
        let mut orders = Orders::default();
        let answer = book.request(asker, &mut left, until, now, &mut orders);
        let tray = match &answer {
            Answer::Granted(grant) => set_aside(shared, &book, grant, asker, now),
            Answer::Wait { .. } | Answer::Refused(_) => None,
        };
        drop(book);
        let asked = match answer {
            Answer::Wait { ticket, mailbox } => {
                self.wait(ticket, mailbox, times, asker);
                Poll::Pending
            }
            Answer::Granted(grant) => Poll::Ready(Ok(lend(shared, grant, tray, asker, None))),
            Answer::Refused(refusal) => Poll::Ready(Err(shared.refused(refusal, site))),
        };
        shared.obey(&mut orders, Place::Task);
        asked
    }

    /// Now it is in line.
    #[inline]
    fn wait(
        &mut self,
        ticket: Ticket,
        mailbox: MailboxRef<Box<Loan<M>>>,
        times: Times,
        asker: Asker,
    ) {
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

    /// Is there some time left to one who has just asked? One who knows need not look at the clock again.
    #[inline]
    pub(crate) fn has_time(&self) -> bool {
        match self.patience {
            Patience::Usual => self.shared.limits.acquire_timeout != Some(Duration::ZERO),
            Patience::For(limit) => limit != Some(Duration::ZERO),
            Patience::Until(deadline) => {
                let asked_at = self.place().times.looked_at;
                self.shared.clock.past(deadline, asked_at).is_none()
            }
        }
    }

    /// Looks at the clock. Answers with the time if that of this turn is over.
    pub(crate) fn over(&mut self) -> Option<Moment> {
        let now = self.shared.clock.now();
        let times = &mut self.place.as_mut().expect("bug: a turn ends once").times;
        times.looked_at = now;
        self.shared.clock.past(times.deadline, now)
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

    /// When the alarm must have woken them.
    #[inline]
    fn until(&self, times: &Times) -> Option<Moment> {
        (self.rouse == Rouse::Alarm).then_some(times.deadline)
    }

    /// Is something in the mailbox? Then it is theirs, and the ledger need not be asked.
    #[inline]
    pub(crate) fn open_mail(&self) -> Option<Mail<Box<Loan<M>>>> {
        let InLine {
            ticket, mailbox, ..
        } = self.place();
        mailbox.claim(ticket.serial)
    }

    /// What was granted was in the mailbox.
    #[inline]
    pub(crate) fn claim(&mut self, grant: Grant<Box<Loan<M>>>) -> Lease<M> {
        if !grant.resource.is_handed_over() {
            // Nobody is in a hurry, and the seat is free for the next.
            let ticket = self.place().ticket;
            self.shared.lock_as_is().note_claim(ticket, grant.slot);
        }
        self.take(grant)
    }

    /// Its time is over, said the mailbox.
    pub(crate) fn give_up(
        &mut self,
        over: TimeIsUp<OpenError<M::Error>>,
    ) -> AcquireError<M::Error> {
        self.place = None;
        self.shared.timed_out(over, self.site)
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
    pub(crate) fn look(&mut self, waker: &Waker) -> Poll<Acquire<M>> {
        upkeep::start(self.shared);
        let now = self.shared.clock.now();
        let place = self.place.as_mut().expect("bug: a turn ends once");
        place.times.looked_at = now;
        let (ticket, times) = (place.ticket, place.times);
        let until = self.until(&times);
        let mut orders = Orders::default();
        let claim = {
            let mut book = self.shared.lock();
            book.claim(ticket, waker, until, now, &mut orders)
        };
        let acquired = claim.map(|claim| self.hear(claim));
        self.shared.obey(&mut orders, Place::Task);
        acquired
    }

    /// Its time is over. What was granted at the last moment may still be on its way; then `waker` is woken.
    pub(crate) fn time_out(&mut self, now: Moment, waker: &Waker) -> Poll<Acquire<M>> {
        let ticket = self.place().ticket;
        let mut orders = Orders::default();
        let claim = {
            let mut book = self.shared.lock();
            book.time_out(ticket, waker, &self.shared.name, now, &mut orders)
        };
        let acquired = claim.map(|claim| self.hear(claim));
        self.shared.obey(&mut orders, Place::Task);
        acquired
    }

    /// The end of the turn. A lease is made of the grant before anything else happens, so that it cannot be lost.
    #[inline]
    fn hear(&mut self, claim: Claim<Box<Loan<M>>>) -> Acquire<M> {
        match claim {
            Ok(grant) => Ok(self.take(grant)),
            Err(refusal) => {
                self.place = None;
                Err(self.shared.refused(refusal, self.site))
            }
        }
    }

    #[cold]
    fn withdraw(&mut self) {
        let ticket = self.place().ticket;
        let orders = self.shared.lock().withdraw(ticket, rt::now());
        self.shared.carry_out(orders, Place::Drop);
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
