//! A caller that cannot be served at once: it asks the ledger, waits in the queue, and takes the outcome out of its mailbox.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::acquire::{Acquire, Patience, lend, put_on_tray};
use crate::ledger::{Again, Answer, Asker, HELD_UP_AFTER, Mail, MailboxRef, Orders, Ticket};
use crate::manager::Manager;
use crate::moment::Moment;
use crate::pooled::Pooled;
use crate::rt::{self, Owner};
use crate::shared::{Book, Place, Shared};
use crate::sync::MutexGuard;
use crate::upkeep;

/// An acquire by the ledger. Dropped while it is queued, it passes on what it was about to get.
pub(crate) struct Waiting<'a, M: Manager + 'static> {
    pub(crate) shared: &'a Arc<Shared<M>>,
    pub(crate) site: &'static Location<'static>,
    patience: Patience,
    place: Option<InLine<M>>,
    /// It was granted a dead resource, and asks again within the same deadline.
    again: Option<Begun>,
}

/// A place in the queue.
struct InLine<M: Manager + 'static> {
    ticket: Ticket,
    mailbox: MailboxRef<Box<Pooled<M>>>,
    begun: Begun,
    /// Only where the alarm cannot wake the waiter: it knows the real time, and this waiter may be on a paused clock.
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// When an acquire began, and when it must end.
#[derive(Clone, Copy)]
struct Begun {
    since: Moment,
    deadline: Moment,
    /// It was in the queue, or is.
    waited: bool,
}

impl<'a, M: Manager + 'static> Waiting<'a, M> {
    #[inline]
    pub(crate) fn new(
        shared: &'a Arc<Shared<M>>,
        site: &'static Location<'static>,
        patience: Patience,
    ) -> Self {
        Self {
            shared,
            site,
            patience,
            place: None,
            again: None,
        }
    }

    /// Returns whether the ledger was not asked yet.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.place.is_none() && self.again.is_none()
    }

    /// Asks, or looks whether there is an outcome. If not, `waker` is woken when there is one.
    pub(crate) fn poll(
        &mut self,
        owner: impl Fn() -> Option<Owner>,
        waker: &Waker,
    ) -> Poll<Acquire<M>> {
        loop {
            let Some(place) = &self.place else {
                let asker = Asker {
                    site: self.site,
                    owner: owner(),
                };
                match self.ask(asker, waker) {
                    Asked::Ended(acquired) => return Poll::Ready(acquired),
                    Asked::Queued => return Poll::Pending,
                    Asked::Again => continue,
                }
            };
            match place.mailbox.take() {
                Some(mail) => {
                    if let Some(acquired) = self.settle(mail) {
                        return Poll::Ready(acquired);
                    }
                }
                None if self.look(waker) => return Poll::Pending,
                // The outcome was delivered meanwhile.
                None => {}
            }
        }
    }

    /// Asks the ledger: an outcome, or a place in the queue.
    fn ask(&mut self, asker: Asker, waker: &Waker) -> Asked<M> {
        let shared = self.shared;
        upkeep::start(shared);
        // Wakers are user code, and must not be cloned under the lock.
        let mut waker = Some(waker.clone());
        let mut now = shared.clock.exact_now();
        let mut begun = self.begin(now);
        let mut ledger = shared.ledger_for_request(now);
        if ledger.begins_line() {
            if shared.clock.notice_pause() {
                now = shared.clock.exact_now();
                begun = self.begin(now);
            }
            if ledger.is_alarm_set() && shared.has_forked() {
                ledger.forget_alarm();
            }
        }
        let deadline = begun.deadline;
        if self.again.is_none() {
            let mut orders = Orders::default();
            let joined = ledger.join_line(asker, &mut waker, deadline, now, &mut orders);
            if let Some((ticket, mailbox)) = joined {
                drop(ledger);
                self.queue(ticket, mailbox, begun);
                shared.carry_out(&mut orders, Place::Task);
                return self.queued(now);
            }
        }
        self.request(ledger, waker, begun, asker, now)
    }

    /// The same where there is more to be decided than a place in the queue.
    fn request(
        &mut self,
        mut ledger: MutexGuard<'_, Book<M>>,
        mut waker: Option<Waker>,
        begun: Begun,
        asker: Asker,
        now: Moment,
    ) -> Asked<M> {
        let shared = self.shared;
        let again = self.again.map(|begun| Again {
            since: begun.since,
            waited: begun.waited,
        });
        let mut orders = Orders::default();
        let answer = ledger.request(asker, &mut waker, begun.deadline, again, now, &mut orders);
        let tray = match &answer {
            Answer::Granted(grant) => {
                put_on_tray(shared, &mut ledger, grant, asker, now, &mut orders)
            }
            Answer::Wait { .. } | Answer::Refused(_) => None,
        };
        let overdue = ledger.is_upkeep_overdue(now);
        drop(ledger);
        let asked = match answer {
            Answer::Wait { ticket, mailbox } => {
                self.queue(ticket, mailbox, begun);
                self.queued(now)
            }
            Answer::Granted(grant) => {
                let since = self.again.map(|begun| begun.since);
                match lend(shared, grant, tray, asker.site, since) {
                    Some(lease) => Asked::Ended(Ok(lease)),
                    None => {
                        self.again = Some(begun);
                        Asked::Again
                    }
                }
            }
            Answer::Refused(refusal) => Asked::Ended(Err(shared.refused(refusal, asker.site))),
        };
        shared.carry_out(&mut orders, Place::Task);
        if overdue {
            upkeep::take_over(shared);
        }
        asked
    }

    #[inline]
    fn queue(&mut self, ticket: Ticket, mailbox: MailboxRef<Box<Pooled<M>>>, begun: Begun) {
        self.again = None;
        self.place = Some(InLine {
            ticket,
            mailbox,
            begun: Begun {
                waited: true,
                ..begun
            },
            timer: None,
        });
    }

    /// It was queued `now`. A caller with no time to wait learns that by asking again.
    #[inline]
    fn queued(&self, now: Moment) -> Asked<M> {
        match self.place().begun.deadline > now {
            true => Asked::Queued,
            false => Asked::Again,
        }
    }

    #[inline]
    fn begin(&self, now: Moment) -> Begun {
        if let Some(begun) = self.again {
            return begun;
        }
        let after = |limit: Option<Duration>| limit.map_or(Moment::NEVER, |limit| now + limit);
        let deadline = match self.patience {
            Patience::Usual => after(self.shared.limits.acquire_timeout),
            Patience::For(limit) => after(limit),
            Patience::Until(deadline) => deadline,
        };
        Begun {
            since: now,
            deadline,
            waited: false,
        }
    }

    fn place(&self) -> &InLine<M> {
        self.place.as_ref().expect("bug: a wait ends once")
    }

    /// When the waiter must look again by itself, where the alarm cannot wake it.
    pub(crate) fn next_look(&self, now: Moment) -> Moment {
        self.place().begun.deadline.min(now + HELD_UP_AFTER)
    }

    /// Returns whether the waiter can sleep. Where the alarm cannot wake it, it has a timer of its own, which may be over already.
    #[inline]
    pub(crate) fn sleeps(&mut self, context: &mut Context<'_>) -> bool {
        !self.shared.needs_timers() || self.sleeps_by_timer(context)
    }

    #[cold]
    fn sleeps_by_timer(&mut self, context: &mut Context<'_>) -> bool {
        let until = self.next_look(self.shared.clock.exact_now());
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

    /// Tells the ledger the waker of this poll. Returns whether the waiter is still queued; if not, the outcome is in its mailbox.
    #[cold]
    fn look(&mut self, waker: &Waker) -> bool {
        let shared = self.shared;
        upkeep::start(shared);
        let ticket = self.place().ticket;
        let waker = waker.clone();
        let now = shared.clock.exact_now();
        let mut orders = Orders::default();
        let (waits, overdue) = {
            let mut ledger = shared.ledger_off_trays();
            let waits = ledger.look(ticket, waker, now, &mut orders);
            (waits, ledger.is_upkeep_overdue(now))
        };
        shared.carry_out(&mut orders, Place::Task);
        if overdue {
            upkeep::take_over(shared);
        }
        waits
    }

    /// The end of the wait. `None`: the resource was dead, and the caller asks again. A lease is made of a grant before anything else
    /// happens, so that it cannot be lost.
    #[inline]
    fn settle(&mut self, mail: Mail<Box<Pooled<M>>>) -> Option<Acquire<M>> {
        let InLine { begun, .. } = self.place.take().expect("bug: a wait ends once");
        match mail {
            Ok(grant) => match lend(self.shared, grant, None, self.site, Some(begun.since)) {
                Some(lease) => Some(Ok(lease)),
                None => {
                    self.again = Some(begun);
                    None
                }
            },
            Err(refusal) => Some(Err(self.shared.refused(refusal, self.site))),
        }
    }

    #[cold]
    fn withdraw(&mut self, place: InLine<M>) {
        let InLine {
            ticket, mailbox, ..
        } = place;
        let now = self.shared.clock.exact_now();
        let mut orders = self
            .shared
            .ledger_off_trays()
            .withdraw(ticket, &mailbox, now);
        self.shared.carry_out(&mut orders, Place::Drop);
    }
}

/// What asking the ledger comes to.
enum Asked<M: Manager + 'static> {
    Ended(Acquire<M>),
    Queued,
    /// It has to ask, or to look, once more.
    Again,
}

impl<M: Manager + 'static> Drop for Waiting<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.withdraw(place);
        }
    }
}
