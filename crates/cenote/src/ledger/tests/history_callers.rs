//! The callers of a random history. Some wait as long as it takes, and the alarm ends the wait of
//! the others.

use super::history::World;
use super::*;

/// A caller that was queued and has not read its outcome yet.
pub(super) struct Caller {
    pub(super) ticket: Ticket,
    pub(super) mailbox: MailboxRef<Token>,
    /// Its place among all callers that ever waited.
    pub(super) joined: i64,
    pub(super) begun: Begun,
    /// The waker of its last poll.
    pub(super) woken: Arc<Woken>,
}

/// How waits ended, by the callers' own account.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) waits: u64,
    pub(super) served: u64,
    pub(super) timed_out: u64,
    pub(super) refused: u64,
    pub(super) cancelled: u64,
}

impl Caller {
    pub(super) fn has_mail(&self) -> bool {
        peek(&self.mailbox, |mail| mail.is_some())
    }

    pub(super) fn has_grant(&self) -> bool {
        peek(&self.mailbox, |mail| matches!(mail, Some(Mail::Grant(_))))
    }

    pub(super) fn has_timeout(&self) -> bool {
        peek(&self.mailbox, |mail| {
            matches!(mail, Some(Mail::TimedOut(..)))
        })
    }

    pub(super) fn has_place(&self) -> bool {
        peek(&self.mailbox, |mail| matches!(mail, Some(Mail::Place)))
    }
}

impl World {
    /// The deadline of a caller that asks now. Some have no time at all.
    pub(super) fn patience(&mut self) -> Moment {
        match self.rng.u8(0..8) {
            0..4 => Moment::NEVER,
            4 => self.now,
            _ => self.now + Duration::from_millis(self.rng.u64(1..3_000)),
        }
    }

    pub(super) fn request(&mut self, deadline: Moment) {
        self.joined += 1;
        self.ask(begun(self.now, deadline), self.joined);
    }

    /// A caller reserves a place, gives one up, or exchanges one for a resource.
    pub(super) fn reserve(&mut self) {
        let deadline = self.patience();
        let mut begun = begun(self.now, deadline);
        match self.rng.u8(0..6) {
            0 if self.permits > 0 => {
                self.permits -= 1;
                self.clear_trays();
                self.call(Ledger::unreserve);
            }
            1..4 if self.permits > 0 => {
                self.permits -= 1;
                begun.again = true;
                begun.ask = Ask::WithPlace;
                let first = self.callers.first().map_or(0, |first| first.joined);
                self.ask(begun, first - 1);
            }
            _ => {
                self.joined += 1;
                begun.ask = Ask::Place;
                self.ask(begun, self.joined);
            }
        }
    }

    /// A caller asks. A caller that met a fault asks again, and comes before all others.
    fn ask(&mut self, mut begun: Begun, joined: i64) {
        self.clear_trays_to_ask(begun.ask);
        self.fork();
        let woken = Arc::new(Woken::default());
        let mut waker = Some(Waker::from(Arc::clone(&woken)));
        let (now, mut orders) = (self.now, Orders::default());
        let ledger = &mut self.ledger;
        let answer = ledger.request(&asker(), &mut waker, &begun, now, &mut orders);
        if begun.ask == Ask::WithPlace {
            begun.ask = Ask::Lease;
        }
        match answer {
            Answer::Granted(grant) => {
                assert!(begun.again || self.is_queue_empty(), "passed a waiter");
                assert!(!self.ledger.breaker.proving, "lent before the proof");
                self.lent_on_tray(grant, &mut orders);
                self.carry_out(orders);
                self.is_lent(begun, joined);
            }
            Answer::Wait { ticket, mailbox } => {
                self.carry_out(orders);
                self.ends.waits += u64::from(!begun.waited);
                self.queued(Caller {
                    ticket,
                    mailbox,
                    joined,
                    begun,
                    woken,
                });
            }
            Answer::Placed => {
                self.carry_out(orders);
                self.permits += 1;
            }
            Answer::Refused(error) => {
                self.carry_out(orders);
                self.is_refused(begun, &error);
            }
            Answer::NotNow => panic!("it can wait"),
        }
    }

    /// A caller was lent a resource: it keeps it, or gives it back at once and asks again.
    fn is_lent(&mut self, begun: Begun, joined: i64) {
        if !self.refuses_lease() {
            self.ends.served += u64::from(begun.waited);
            return;
        }
        let first = self.callers.first().map_or(joined, |first| first.joined);
        let again = Begun {
            again: true,
            ..begun
        };
        self.ask(again, first.min(joined) - 1);
    }

    fn is_refused(&mut self, begun: Begun, error: &AcquireError<&'static str>) {
        match error {
            AcquireError::Closed { .. } => assert!(self.closed),
            AcquireError::Rejected { .. } => assert!(!begun.again, "it has a place"),
            _ => {}
        }
        self.ends.refused += u64::from(begun.waited);
    }

    pub(super) fn try_request(&mut self) {
        self.clear_trays_to_ask(Ask::Lease);
        let (now, mut orders) = (self.now, Orders::default());
        let begun = begun(now, now);
        let ledger = &mut self.ledger;
        match ledger.request(&asker(), &mut None, &begun, now, &mut orders) {
            Answer::Granted(grant) => {
                assert!(self.is_queue_empty(), "a try passed a waiter");
                self.lent_on_tray(grant, &mut orders);
                self.carry_out(orders);
                self.refuses_lease();
            }
            Answer::Wait { .. } | Answer::Placed => panic!("a try was queued, or got a place"),
            Answer::Refused(_) | Answer::NotNow => self.carry_out(orders),
        }
    }

    pub(super) fn is_queue_empty(&mut self) -> bool {
        let Self {
            ledger, callers, ..
        } = self;
        let mut tickets = callers.iter().map(|caller| caller.ticket);
        !tickets.any(|ticket| ledger.waiters.waiter(ticket).is_some())
    }

    fn queued(&mut self, mut caller: Caller) {
        caller.begun.waited = true;
        self.callers.push(caller);
        self.callers.sort_by_key(|caller| caller.joined);
    }

    /// Every alarm that is due goes off. Now and then it is late, and upkeep may come first.
    pub(super) fn alarm(&mut self) {
        while let Some(at) = self.alarms.first().copied().filter(|at| *at <= self.now) {
            if self.rng.u8(0..8) == 0 {
                return;
            }
            self.alarms.remove(&at);
            let is_valid = self.ledger.alarm_at == Some(at);
            let mut orders = Orders::default();
            let next = self.ledger.alarm(at, self.now, &mut orders);
            if !is_valid {
                let is_woken = orders.first_waker().is_some();
                assert!(next.is_none() && !is_woken, "it was overtaken");
                continue;
            }
            assert!(next.is_none_or(|next| next > self.now), "it never rests");
            self.alarms.extend(next);
            self.carry_out(orders);
            self.check_deadlines();
        }
    }

    /// After a round of the alarm, no waiter is overdue, and no grant is unclaimed beyond its
    /// deadline.
    pub(super) fn check_deadlines(&mut self) {
        for caller in &self.callers {
            if caller.begun.deadline <= self.now {
                let waits = self.ledger.waiters.waiter(caller.ticket).is_some();
                assert!(!waits, "overdue, and still queued");
                assert!(!caller.has_grant(), "overdue, and the grant is unclaimed");
            }
        }
    }

    /// Sometimes the alarm was set by a process that forked. It never goes off in this one.
    fn fork(&mut self) {
        if self.ledger.begins_queue() && self.rng.u8(0..8) == 0 {
            self.ledger.forget_alarm();
            self.alarms.clear();
        }
    }

    pub(super) fn with_caller(&mut self, act: fn(&mut Self, Caller)) {
        if !self.callers.is_empty() {
            let nth = self.rng.usize(0..self.callers.len());
            let caller = self.callers.remove(nth);
            act(self, caller);
        }
    }

    /// A caller is polled, with the same waker or with another one. It need not have been woken.
    pub(super) fn poll(&mut self, mut caller: Caller) {
        if let Some(mail) = caller.mailbox.take() {
            return self.read(caller, mail);
        }
        if self.rng.bool() {
            caller.woken = Arc::default();
        }
        caller.woken.reset();
        let (ticket, waker) = (caller.ticket, Waker::from(Arc::clone(&caller.woken)));
        let waits = self.call(|ledger, now, orders| ledger.look(ticket, waker, now, orders));
        let mail = caller.mailbox.take();
        assert_ne!(waits, mail.is_some(), "I7: in the queue, or with mail");
        match mail {
            Some(mail) => self.read(caller, mail),
            None => {
                let is_timely = caller.begun.deadline > self.now;
                assert!(is_timely, "it waits beyond its deadline");
                self.queued(caller);
            }
        }
    }

    fn read(&mut self, caller: Caller, mail: Mail<Token>) {
        let Caller { begun, joined, .. } = caller;
        match mail {
            Mail::Grant(grant) => {
                self.lent(grant, None);
                self.is_lent(begun, joined);
            }
            Mail::Place => {
                assert_eq!(begun.ask, Ask::Place, "it wants a resource");
                self.ends.served += 1;
                self.permits += 1;
            }
            Mail::TimedOut(_, seen) => {
                assert!(begun.deadline <= seen.at, "timed out early");
                self.ends.timed_out += 1;
            }
            Mail::Refusal(error) => self.is_refused(begun, &error),
        }
    }

    pub(super) fn withdraw(&mut self, caller: Caller) {
        let has_timeout = caller.has_timeout();
        let before = self.ledger.counts.cancelled;
        let (ticket, mailbox) = (caller.ticket, &caller.mailbox);
        self.call(|ledger, now, orders| ledger.withdraw(ticket, mailbox, now, orders));
        if self.ledger.counts.cancelled > before {
            assert!(!has_timeout, "it had timed out");
            self.ends.cancelled += 1;
        } else {
            let is_overdue = caller.begun.deadline <= self.now;
            assert!(has_timeout || is_overdue, "it did not time out");
            self.ends.timed_out += 1;
        }
        assert!(caller.mailbox.take().is_none(), "its mail was left behind");
    }

    /// A watcher comes, looks again, or goes.
    pub(super) fn watch(&mut self) {
        let dice = self.rng.u8(0..4);
        if dice == 0 || self.watchers.is_empty() {
            self.watchers.push((None, Arc::default()));
        }
        let nth = self.rng.usize(0..self.watchers.len());
        if dice == 1 {
            let (number, woken) = self.watchers.swap_remove(nth);
            let waker = number.and_then(|number| self.ledger.unwatch(number));
            drop(waker);
            assert_eq!(
                Arc::strong_count(&woken),
                1,
                "the waker of a watcher was kept"
            );
            return;
        }
        let (number, woken) = &mut self.watchers[nth];
        if dice == 2 {
            *woken = Arc::default();
        }
        woken.reset();
        let waker = Waker::from(Arc::clone(woken));
        let before = self.ledger.watch(number, false, waker);
        drop(before);
    }
}
