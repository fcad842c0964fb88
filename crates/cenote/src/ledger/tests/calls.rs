//! A rig for tests of one promise: a ledger, the time, and short forms of its entries.

use super::*;

pub(super) const SECOND: Duration = Duration::from_secs(1);

impl Resource for Token {
    type Failure = &'static str;

    fn opened(&mut self, _: SlotNo, _: u64) {}
}

impl<R: Resource> Orders<R> {
    /// Wakes all, as the shell does.
    pub(super) fn wake_all(&mut self) {
        if let Some(waker) = self.first_waker() {
            waker.wake();
        }
        if let Some(more) = self.more_wakers() {
            more.wakers.into_iter().for_each(Waker::wake);
        }
    }
}

#[track_caller]
pub(super) fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

pub(super) fn limits(config: Config) -> Arc<Limits> {
    Arc::new(Limits::check(config).expect("these settings are valid"))
}

/// Nothing happens to a resource by itself.
pub(super) fn of_size(max_size: usize) -> Config {
    Config {
        max_size,
        max_lifetime: None,
        idle_timeout: None,
        leak_after: None,
        check_after_idle: None,
        upkeep_interval: 30 * SECOND,
        lifetime_jitter: 0.0,
        ..Config::default()
    }
}

/// A waiter, and what it has heard.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) mailbox: MailboxRef<Token>,
    pub(super) woken: Arc<Woken>,
    /// The moment that the alarm was set for on its behalf.
    pub(super) alarm: Option<Moment>,
}

impl Waiter {
    pub(super) fn wakes(&self) -> usize {
        self.woken.count()
    }

    /// Claims what was granted.
    #[track_caller]
    pub(super) fn claim(&self) -> Grant<Token> {
        match self.mailbox.take() {
            Some(Ok(grant)) => grant,
            mail => panic!("a grant was to be there: {mail:?}"),
        }
    }

    #[track_caller]
    pub(super) fn refusal(&self) -> Refusal<&'static str> {
        match self.mailbox.take() {
            Some(Err(refusal)) => refusal,
            mail => panic!("a refusal was to be there: {mail:?}"),
        }
    }

    #[track_caller]
    pub(super) fn timeout(&self) -> TimeIsUp<&'static str> {
        match self.refusal() {
            Refusal::TimedOut(over) => over,
            refusal => panic!("its time was to be over: {refusal:?}"),
        }
    }

    pub(super) fn has_mail(&self) -> bool {
        let mail = self.mailbox.take();
        let has_mail = mail.is_some();
        if let Some(mail) = mail {
            self.mailbox.deliver(mail);
        }
        has_mail
    }
}

pub(super) struct Rig {
    pub(super) ledger: Ledger<Token>,
    pub(super) now: Moment,
    minted: Token,
}

impl Rig {
    pub(super) fn new(config: Config) -> Self {
        Self::with_trays(config, 0)
    }

    pub(super) fn with_trays(config: Config, trays: usize) -> Self {
        let now = crate::rt::now();
        Self {
            ledger: Ledger::new(limits(config), "pool".into(), false, trays, 0, now),
            now,
            minted: 0,
        }
    }

    /// A pool of one, which is lent.
    pub(super) fn dry() -> (Self, SlotNo) {
        let mut rig = Self::new(of_size(1));
        let lent = rig.lend_new();
        let _ = rig.ledger.upkeep(rig.now);
        (rig, lent.slot)
    }

    /// A caller has to wait, for at most so long.
    pub(super) fn wait(&mut self, limit: Option<Duration>) -> Waiter {
        let deadline = limit.map_or(Moment::NEVER, |limit| self.now + limit);
        let (waiter, mut orders) = self.ask(asker(), deadline);
        orders.wake_all();
        waiter
    }

    pub(super) fn ask(&mut self, asker: Asker, deadline: Moment) -> (Waiter, Orders<Token>) {
        let woken = Arc::new(Woken::default());
        let mut waker = Some(Waker::from(Arc::clone(&woken)));
        let (ledger, now) = (&mut self.ledger, self.now);
        let mut orders = Orders::default();
        let joined = ledger.join_line(asker, &mut waker, deadline, now, &mut orders);
        let (ticket, mailbox) = match joined {
            Some(place) => place,
            None => match ledger.request(asker, &mut waker, deadline, None, now, &mut orders) {
                Answer::Wait { ticket, mailbox } => (ticket, mailbox),
                answer => panic!("it was to wait: {answer:?}"),
            },
        };
        let alarm = orders.alarm;
        let waiter = Waiter {
            ticket,
            mailbox,
            woken,
            alarm,
        };
        (waiter, orders)
    }

    /// Waiters whose time is over after so many steps each.
    pub(super) fn crowd<const N: usize>(&mut self, step: Duration, steps: [u32; N]) -> [Waiter; N] {
        steps.map(|steps| self.wait(Some(steps * step)))
    }

    /// The slots of the opens that are owed.
    pub(super) fn begin_opens(&mut self) -> Vec<SlotNo> {
        let mut slots = Vec::new();
        while let Some(work) = self.ledger.next_work() {
            match work {
                Work::Open { slot } => slots.push(slot),
                work => panic!("{work:?} is owed"),
            }
        }
        slots
    }

    /// Does all opens that are owed.
    pub(super) fn open(&mut self) -> usize {
        let slots = self.begin_opens();
        for slot in &slots {
            self.opened(*slot).wake_all();
        }
        slots.len()
    }

    pub(super) fn opened(&mut self, slot: SlotNo) -> Orders<Token> {
        self.minted += 1;
        self.ledger.opened(slot, self.minted, None, self.now).1
    }

    /// Lends a resource that is opened for it.
    pub(super) fn lend_new(&mut self) -> Grant<Token> {
        let waiter = self.wait(None);
        self.open();
        if self.ledger.waiters.is_empty() {
            // As if the alarm had gone off since.
            self.ledger.alarm_at = None;
        }
        waiter.claim()
    }

    /// Lends an idle resource.
    #[track_caller]
    pub(super) fn lend(&mut self) -> (Grant<Token>, Orders<Token>) {
        let mut orders = Orders::default();
        match self.ledger.try_request(asker(), self.now, &mut orders) {
            Ok(Some(grant)) => (grant, orders),
            answer => panic!("it was to be lent: {answer:?}"),
        }
    }

    /// Opens so many, all of which are idle then.
    pub(super) fn stock(&mut self, count: usize) {
        let lent: Vec<_> = (0..count).map(|_| self.lend_new()).collect();
        for grant in lent {
            let _ = self.give_back(grant.slot);
        }
        let _ = self.ledger.upkeep(self.now);
    }

    pub(super) fn give_back(&mut self, slot: SlotNo) -> Orders<Token> {
        self.give_back_as(slot, Condition::Good)
    }

    /// The waiters are woken as well.
    pub(super) fn give_back_as(&mut self, slot: SlotNo, condition: Condition) -> Orders<Token> {
        let mut orders = Orders::default();
        let (dropped, now) = (Manner::Dropped, self.now);
        let token = self.minted;
        self.ledger
            .give_back(slot, token, condition, dropped, now, &mut orders);
        orders.wake_all();
        orders
    }

    pub(super) fn look(&mut self, waiter: &Waiter) -> (bool, Orders<Token>) {
        let waker = Waker::from(Arc::clone(&waiter.woken));
        let mut orders = Orders::default();
        let waits = self
            .ledger
            .look(waiter.ticket, waker, self.now, &mut orders);
        orders.wake_all();
        (waits, orders)
    }

    pub(super) fn withdraw(&mut self, waiter: &Waiter) -> Orders<Token> {
        let (ledger, now) = (&mut self.ledger, self.now);
        let mut orders = ledger.withdraw(waiter.ticket, &waiter.mailbox, now);
        orders.wake_all();
        orders
    }

    /// The alarm that was set for this moment goes off in time. Returns when it goes off next.
    pub(super) fn alarm(&mut self, at: Moment) -> Option<Moment> {
        self.now = self.now.max(at);
        let (next, mut orders) = self.ledger.alarm(at, self.now);
        orders.wake_all();
        next
    }

    /// The alarm goes off whenever it is due, until then.
    pub(super) fn sleep_until(&mut self, until: Moment) {
        for _ in 0..1_000 {
            let Some(at) = self.ledger.alarm_at.filter(|at| *at <= until) else {
                self.now = until;
                return;
            };
            self.alarm(at);
        }
        panic!("the alarm never rests");
    }

    pub(super) fn trip(&mut self) -> Orders<Token> {
        let inactive = BreakerState::Inactive;
        let (_, mut orders) = self.ledger.set_breaker(None, inactive, self.now);
        orders.wake_all();
        orders
    }

    pub(super) fn status(&self) -> Status {
        self.ledger.status(self.now)
    }

    pub(super) fn owed(&mut self) -> Vec<Work<Token>> {
        let mut owed = Vec::new();
        while let Some(work) = self.ledger.next_work() {
            owed.push(work);
        }
        owed
    }
}

/// How often it was woken.
#[derive(Debug, Default)]
pub(super) struct Woken(AtomicUsize);

impl Woken {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns whether this waker wakes it. `will_wake` may deny that where code is generated
    /// twice.
    pub(super) fn is_woken_by(self: &Arc<Self>, waker: &Waker) -> bool {
        waker.data() == Arc::as_ptr(self).cast()
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
