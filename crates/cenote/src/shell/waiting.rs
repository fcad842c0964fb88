//! A caller that cannot be served by a tray: it asks the ledger, waits in the queue, and takes the
//! outcome out of its mailbox.

use std::panic::Location;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::acquire::{Outcome, Patience, lend, put_on_tray};
use super::carry_out::Place;
use super::kind::Kind;
use super::pooled::Pooled;
use super::shared::PoolRef;
use super::upkeep_task;
use super::wait_told::Extras;
use crate::error::AcquireError;
use crate::ledger::{
    Answer, Ask, Asker, Begun, Mail, MailboxRef, Orders, Resource, Ticket, looks_every,
};
use crate::log::Log;
use crate::rt::Owner;
use crate::time::{self, Moment};
use crate::timed_out::TimedOut;

/// An acquire under way. Dropped while it is queued, it passes on what it was about to get.
#[must_use = "nothing is acquired unless it is awaited"]
pub(crate) struct Waiting<'a, K: Kind> {
    pub(crate) shared: &'a PoolRef<K>,
    pub(crate) site: &'static Location<'static>,
    patience: Patience,
    /// `NOT_YET` until the ledger is asked.
    pub(super) begun: Begun,
    pub(super) place: Option<InQueue<K>>,
}

/// A place in the queue.
pub(super) struct InQueue<K: Kind> {
    ticket: Ticket,
    mailbox: MailboxRef<Box<Pooled<K>>>,
    /// In a box, because few waiters need any of it, and every acquire moves its future.
    pub(super) extras: Option<Box<Extras>>,
}

/// The result of asking the ledger.
enum Asked<K: Kind> {
    Ended(Outcome<K>),
    Queued,
    /// The caller has to ask, or to look, once more.
    Again,
    /// No resource is ready, and the caller does not wait.
    NotNow,
}

impl<'a, K: Kind> Waiting<'a, K> {
    #[inline]
    pub(crate) fn new(
        shared: &'a PoolRef<K>,
        site: &'static Location<'static>,
        patience: Patience,
    ) -> Self {
        Self {
            shared,
            site,
            patience,
            begun: Begun::NOT_YET,
            place: None,
        }
    }

    /// Asks for something else than a lease that may be waited for.
    pub(crate) fn asking(mut self, ask: Ask) -> Self {
        self.begun.ask = ask;
        self.begun.again = ask == Ask::WithPlace;
        self
    }

    /// Returns whether the ledger was not asked yet.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.begun.since == Begun::NOT_YET.since
    }

    /// Asks, or looks whether there is an outcome. If not, `waker` is woken when there is one.
    #[inline]
    pub(crate) fn ask_or_look(
        &mut self,
        owner: impl Fn() -> Option<Owner>,
        waker: &Waker,
    ) -> Poll<Outcome<K>> {
        loop {
            let Some(place) = &self.place else {
                match self.ask(owner(), Some(waker.clone()), Place::Task) {
                    Asked::Ended(acquired) => return Poll::Ready(acquired),
                    Asked::Queued | Asked::NotNow => return Poll::Pending,
                    Asked::Again => continue,
                }
            };
            let acquired = match place.mailbox.take_grant() {
                Some(pooled) => self.claim(pooled),
                None => match place.mailbox.take() {
                    Some(mail) => self.settle(mail),
                    None if !upkeep_task::start(self.shared) => {
                        self.withdraw();
                        return Poll::Ready(self.no_local_set());
                    }
                    None if self.look(waker) => return Poll::Pending,
                    // The outcome was delivered meanwhile.
                    None => continue,
                },
            };
            if let Some(acquired) = acquired {
                return Poll::Ready(acquired);
            }
        }
    }

    /// Asks without waiting. `None`: the caller would have to wait.
    pub(crate) fn try_now(mut self) -> Option<Outcome<K>> {
        loop {
            match self.ask(Owner::of_task(), None, K::here()) {
                Asked::Ended(outcome) => return Some(outcome),
                Asked::Queued | Asked::NotNow => return None,
                Asked::Again => {}
            }
        }
    }

    /// Asks the ledger: an outcome, or a place in the queue for a caller with a waker. Wakers are
    /// user code, and must not be cloned under the lock.
    ///
    /// Not inlined, so that a poll that finds its outcome does not set up all this.
    #[inline(never)]
    fn ask(&mut self, owner: Option<Owner>, mut waker: Option<Waker>, place: Place) -> Asked<K> {
        let shared = self.shared;
        if place == Place::Task && !upkeep_task::start(shared) {
            return Asked::Ended(self.no_local_set());
        }
        let site = self.site;
        let asker = Asker { site, owner };
        let mut now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let mut ledger = shared.ledger_for_request(self.begun.ask, now);
        if ledger.begins_queue() {
            if shared.clock.notice_pause() {
                now = shared.clock.exact_now();
            }
            // The alarm's thread does not survive a fork.
            if ledger.is_alarm_set() && K::has_lost_alarm(shared) {
                ledger.forget_alarm();
            }
        }
        if self.is_new() {
            self.begin(now);
        }
        let answer = ledger.request(&asker, &mut waker, &self.begun, now, &mut orders);
        let tray = match &answer {
            Answer::Granted(pooled) => {
                put_on_tray(shared, &mut ledger, pooled.slot(), &asker, now, &mut orders)
            }
            Answer::Placed | Answer::Wait { .. } | Answer::Refused(_) | Answer::NotNow => None,
        };
        if self.begun.ask == Ask::WithPlace {
            // The place is spent.
            self.begun.ask = Ask::Lease;
        }
        let overdue = ledger.is_upkeep_overdue(now);
        drop(ledger);
        let asked = match answer {
            Answer::Wait { ticket, mailbox } => {
                self.begun.waited = true;
                self.place = Some(InQueue {
                    ticket,
                    mailbox,
                    extras: Extras::new(&shared.name, site),
                });
                // A caller with no time to wait learns that by asking again.
                match self.begun.deadline > now {
                    true => Asked::Queued,
                    false => Asked::Again,
                }
            }
            Answer::Granted(pooled) => {
                let since = self.begun.again.then_some(self.begun.since);
                match lend(shared, pooled, tray, site, since) {
                    Some(lease) => Asked::Ended(Outcome::Lease(lease)),
                    None => {
                        self.begun.again = true;
                        Asked::Again
                    }
                }
            }
            Answer::Placed => Asked::Ended(Outcome::Place),
            Answer::Refused(error) => {
                self.tell_of_refusal(&error);
                Asked::Ended(Outcome::Failed(error))
            }
            Answer::NotNow => Asked::NotNow,
        };
        shared.carry_out(orders, place);
        if overdue && place == Place::Task {
            upkeep_task::take_over(shared);
        }
        if matches!(asked, Asked::Queued) {
            shared.uppers.tell();
        }
        asked
    }

    /// No task can be started here, so the wait might never end.
    #[cold]
    fn no_local_set(&self) -> Outcome<K> {
        let pool = self.shared.name.clone();
        Outcome::Failed(Box::new(AcquireError::NoLocalSet { pool }))
    }

    #[inline]
    fn begin(&mut self, now: Moment) {
        let after = |limit: Option<Duration>| limit.map_or(Moment::NEVER, |limit| now + limit);
        self.begun.since = now;
        self.begun.deadline = match self.patience {
            Patience::Usual => after(self.shared.limits.acquire_timeout),
            Patience::For(limit) => after(limit),
            Patience::Until(deadline) => deadline,
        };
    }

    fn place(&self) -> &InQueue<K> {
        self.place.as_ref().expect("bug: a wait ends once")
    }

    /// When the waiter must look again by itself, where the alarm cannot wake it.
    pub(crate) fn next_look(&self, now: Moment) -> Moment {
        let after = looks_every(&self.shared.limits);
        self.begun.deadline.min(now + after)
    }

    /// Returns whether the waiter can sleep. Where the alarm cannot wake it, it has a timer of its
    /// own, whose time may have come already.
    #[inline]
    pub(crate) fn sleeps(&mut self, context: &mut Context<'_>) -> bool {
        !K::needs_timers(self.shared) || self.sleeps_by_timer(context)
    }

    #[cold]
    fn sleeps_by_timer(&mut self, context: &mut Context<'_>) -> bool {
        let until = self.next_look(self.shared.clock.exact_now());
        let Some(place) = &mut self.place else {
            return false;
        };
        let extras = place.extras.get_or_insert_default();
        let timer = extras
            .timer
            .get_or_insert_with(|| Box::pin(time::sleep_until(Some(until))));
        let sleeps = timer.as_mut().poll(context).is_pending();
        if !sleeps {
            extras.timer = None;
        }
        sleeps
    }

    /// Gives the ledger the waker of this poll. Returns whether the waiter is still queued; if not,
    /// the outcome is in its mailbox.
    #[cold]
    fn look(&mut self, waker: &Waker) -> bool {
        let shared = self.shared;
        let ticket = self.place().ticket;
        let waker = waker.clone();
        let now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let (waits, overdue) = {
            let mut ledger = shared.ledger_off_trays();
            let waits = ledger.look(ticket, waker, now, &mut orders);
            (waits, ledger.is_upkeep_overdue(now))
        };
        shared.carry_out(orders, Place::Task);
        if overdue {
            upkeep_task::take_over(shared);
        }
        if waits {
            shared.uppers.tell();
            if Log::is_on() {
                self.tell_if_slow(now);
            }
        }
        waits
    }

    /// The end of the wait, with a grant. `None`: the resource was dead, and the caller asks again.
    /// A lease is made before anything else happens, so that the grant cannot be lost.
    #[inline]
    fn claim(&mut self, pooled: Box<Pooled<K>>) -> Option<Outcome<K>> {
        self.place = None;
        let since = Some(self.begun.since);
        let lease = lend(self.shared, pooled, None, self.site, since);
        self.begun.again |= lease.is_none();
        lease.map(Outcome::Lease)
    }

    /// The end of the wait. `None`: the resource was dead, and the caller asks again.
    #[cold]
    fn settle(&mut self, mail: Mail<Box<Pooled<K>>>) -> Option<Outcome<K>> {
        let place = self.place.take();
        match mail {
            Mail::Grant(pooled) => self.claim(pooled),
            Mail::Place => Some(Outcome::Place),
            Mail::TimedOut(phase, seen) => {
                let since = self.begun.since;
                let timed_out = TimedOut { since, phase, seen };
                self.tell_of_timeout(&timed_out, place.as_ref());
                Some(Outcome::Failed(Box::new(AcquireError::TimedOut(timed_out))))
            }
            Mail::Refusal(error) => {
                self.tell_of_refusal(&error);
                Some(Outcome::Failed(error))
            }
        }
    }

    #[cold]
    fn withdraw(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        let now = self.shared.clock.exact_now();
        let mut orders = Orders::default();
        let mut ledger = self.shared.ledger_off_trays();
        ledger.withdraw(place.ticket, &place.mailbox, now, &mut orders);
        drop(ledger);
        self.shared.carry_out(orders, Place::Drop);
    }
}

impl<K: Kind> Drop for Waiting<'_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.place.is_some() {
            self.withdraw();
        }
    }
}
