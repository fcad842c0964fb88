//! The callers of a random history: some have all the time, and the alarm ends the wait of the
//! others.

use super::*;

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
    /// Looks into the mailbox, and leaves everything there.
    pub(super) fn peek<T>(&self, look: impl FnOnce(Option<&Mail<Token>>) -> T) -> T {
        let mail = self.mailbox.take();
        let seen = look(mail.as_ref());
        if let Some(mail) = mail {
            self.mailbox.deliver(mail);
        }
        seen
    }

    pub(super) fn has_grant(&self) -> bool {
        self.peek(|mail| matches!(mail, Some(Ok(_))))
    }

    pub(super) fn has_timeout(&self) -> bool {
        self.peek(|mail| matches!(mail, Some(Err(Refusal::TimedOut(_)))))
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

    pub(super) fn joins(
        &mut self,
        ticket: Ticket,
        mailbox: MailboxRef<Token>,
        woken: Arc<Woken>,
        deadline: Moment,
    ) {
        self.joined += 1;
        self.ends.waits += 1;
        self.callers.push(Caller {
            ticket,
            mailbox,
            joined: self.joined,
            since: self.now,
            deadline,
            woken,
            again: false,
        });
    }

    /// Every alarm that is due goes off. Now and then it is late, and the upkeep task may come
    /// first.
    pub(super) fn alarm(&mut self) {
        while let Some(at) = self.alarms.first().copied().filter(|at| *at <= self.now) {
            if self.rng.u8(0..8) == 0 {
                return;
            }
            self.alarms.remove(&at);
            let is_valid = self.ledger.alarm_at == Some(at);
            let (next, orders) = self.ledger.alarm(at, self.now);
            if !is_valid {
                assert!(next.is_none() && !orders.wakes(), "it was overtaken");
                continue;
            }
            assert!(next.is_none_or(|next| next > self.now), "it never rests");
            self.alarms.extend(next);
            self.obey(orders);
            self.check_deadlines();
        }
    }

    /// After a round of the alarm, no waiter is overdue, and no grant is unclaimed beyond its
    /// deadline.
    pub(super) fn check_deadlines(&mut self) {
        let now = self.now;
        for caller in self.callers.iter().filter(|caller| caller.deadline <= now) {
            let waits = self.ledger.waiters.waiter(caller.ticket).is_some();
            assert!(!waits, "overdue, and still queued");
            assert!(!caller.has_grant(), "overdue, and the grant is unclaimed");
        }
    }

    /// The alarm was set by a process that forked. It never goes off in this one.
    pub(super) fn fork(&mut self) {
        if self.ledger.begins_line() && self.rng.u8(0..8) == 0 {
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

    /// A waiter is polled, by the same waker or by another one. It need not have been woken.
    pub(super) fn poll(&mut self, mut caller: Caller) {
        if let Some(mail) = caller.mailbox.take() {
            return self.hears(caller, mail);
        }
        if self.rng.bool() {
            caller.woken = Arc::default();
        }
        caller.woken.reset();
        let waker = Waker::from(Arc::clone(&caller.woken));
        let mut orders = Orders::default();
        let waits = self
            .ledger
            .look(caller.ticket, waker, self.now, &mut orders);
        self.obey(orders);
        let mail = caller.mailbox.take();
        assert_ne!(waits, mail.is_some(), "I7: both in the queue and not");
        match mail {
            Some(mail) => self.hears(caller, mail),
            None => {
                assert!(caller.deadline > self.now, "it waits beyond its deadline");
                self.callers.push(caller);
                self.callers.sort_by_key(|caller| caller.joined);
            }
        }
    }

    fn hears(&mut self, caller: Caller, mail: Mail<Token>) {
        match mail {
            Ok(grant) if self.rng.u8(0..8) == 0 => self.buries(caller, grant),
            Ok(grant) => {
                self.ends.served += 1;
                self.lent(grant, None);
            }
            Err(Refusal::TimedOut(over)) => {
                assert!(caller.deadline <= over.seen.at, "timed out early");
                assert_eq!(over.since, caller.since, "it began to wait then");
                self.ends.timed_out += 1;
            }
            Err(Refusal::Closed) => {
                assert!(self.closed);
                self.ends.refused += 1;
            }
            Err(_) => self.ends.refused += 1,
        }
    }

    /// The resource was dead: it is closed, and the caller asks again from its old place.
    fn buries(&mut self, caller: Caller, grant: Grant<Token>) {
        self.lent(grant, None);
        let dead = self.leases.pop().expect("it was just lent");
        self.come_back(dead, Condition::Dead);
        let (deadline, since) = (caller.deadline, caller.since);
        let woken = Arc::new(Woken::default());
        let mut waker = Some(Waker::from(Arc::clone(&woken)));
        self.clear_trays_to_ask();
        let (again, mut orders) = (
            Some(Again {
                since,
                waited: true,
            }),
            Orders::default(),
        );
        let (ledger, now) = (&mut self.ledger, self.now);
        let answer = ledger.request(asker(), &mut waker, deadline, again, now, &mut orders);
        match answer {
            Answer::Granted(grant) => {
                self.ends.served += 1;
                self.lent_on_tray(grant, &mut orders);
            }
            Answer::Wait { ticket, mailbox } => {
                let first = self.callers.first().map_or(0, |first| first.joined);
                let joined = first.min(caller.joined) - 1;
                let again = Caller {
                    ticket,
                    mailbox,
                    joined,
                    since,
                    deadline,
                    woken,
                    again: true,
                };
                self.callers.insert(0, again);
            }
            Answer::Refused(refusal) => {
                assert!(
                    !matches!(refusal, Refusal::Rejected { .. }),
                    "it has a place"
                );
                self.ends.refused += 1;
            }
        }
        self.obey(orders);
    }

    pub(super) fn withdraw(&mut self, caller: Caller) {
        let is_over = caller.has_timeout();
        let (ledger, now) = (&mut self.ledger, self.now);
        let before = ledger.counts.cancelled;
        let orders = ledger.withdraw(caller.ticket, &caller.mailbox, now);
        if ledger.counts.cancelled > before {
            assert!(!is_over, "it had timed out");
            self.ends.cancelled += 1;
        } else {
            assert!(is_over || caller.deadline <= now, "it did not time out");
            self.ends.timed_out += 1;
        }
        assert!(caller.mailbox.take().is_none(), "its mail was left behind");
        self.obey(orders);
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
        let before = self.ledger.watch(number, waker);
        drop(before);
    }
}
