//! A rig for tests of one promise: a ledger, the time, and short forms of the ledger's entries.

use super::super::circle::Circle;
use super::*;

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// More waiters than one round of timeouts handles. Miri is too slow for so many.
pub(super) const CROWD: usize = if cfg!(miri) { 600 } else { 10_000 };

impl<R: Resource> Orders<R> {
    /// Wakes all that are to be woken, as the shell does.
    pub(super) fn wake_all(&mut self) {
        if let Some(waker) = self.first_waker() {
            waker.wake();
        }
        let many = self.rest.as_mut().map(|rest| mem::take(&mut rest.many));
        for one in many.unwrap_or_default() {
            if let Many::Wake(waker) = one {
                waker.wake();
            }
        }
    }

    pub(super) fn owed(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.owed)
    }

    pub(super) fn rings(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.ring)
    }

    pub(super) fn alarm(&self) -> Option<Moment> {
        self.rest.as_ref()?.alarm
    }

    pub(super) fn take_circle(&mut self) -> Option<Circle> {
        self.rest.as_mut()?.circle.take()
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

/// A caller that asks now, for the first time.
pub(super) fn begun(now: Moment, deadline: Moment) -> Begun {
    Begun {
        since: now,
        deadline,
        again: false,
        waited: false,
        ask: Ask::Lease,
    }
}

pub(super) fn refused() -> OpenError<&'static str> {
    OpenError::Failed(Cause::from("refused"))
}

/// Settings under which a resource neither ages nor is checked.
pub(super) fn of_size(max_size: usize) -> Config {
    Config {
        max_size,
        max_lifetime: None,
        idle_timeout: None,
        leak_after: None,
        check_after_idle: None,
        upkeep_interval: 30 * SECOND,
        lifetime_jitter: 0.0,
        self_probe: false,
        ..Config::default()
    }
}

pub(super) struct Rig {
    pub(super) ledger: Ledger<Token>,
    pub(super) now: Moment,
    /// The orders of the last call, except for the wake-ups: these were carried out.
    pub(super) orders: Orders<Token>,
    trays: Vec<Option<OnTray<Token>>>,
}

impl Rig {
    pub(super) fn new(config: Config) -> Self {
        Self::with_trays(config, 0)
    }

    pub(super) fn with_trays(config: Config, trays: usize) -> Self {
        let now = crate::time::now();
        Self {
            ledger: Ledger::new(limits(config), "pool".into(), false, trays, 0, now),
            now,
            orders: Orders::default(),
            trays: (0..trays).map(|_| None).collect(),
        }
    }

    /// A pool of one resource, which is lent. Upkeep sleeps.
    pub(super) fn exhausted() -> (Self, SlotNo) {
        let mut rig = Self::new(of_size(1));
        let lent = rig.lend_new();
        rig.upkeep();
        (rig, lent.slot)
    }

    /// Makes one call to the ledger, and wakes all that are to be woken.
    pub(super) fn call<T>(
        &mut self,
        entry: impl FnOnce(&mut Ledger<Token>, Moment, &mut Orders<Token>) -> T,
    ) -> T {
        self.orders = Orders::default();
        let answer = entry(&mut self.ledger, self.now, &mut self.orders);
        self.orders.wake_all();
        answer
    }

    /// A caller asks, and has to wait: for at most so long.
    pub(super) fn wait(&mut self, limit: Option<Duration>) -> Waiter {
        let deadline = limit.map_or(Moment::NEVER, |limit| self.now + limit);
        self.wait_as(asker(), deadline)
    }

    pub(super) fn wait_as(&mut self, asker: Asker, deadline: Moment) -> Waiter {
        let begun = begun(self.now, deadline);
        self.queue(asker, begun)
    }

    /// A caller asks, and has to wait.
    pub(super) fn queue(&mut self, asker: Asker, begun: Begun) -> Waiter {
        let woken = Arc::new(Woken::default());
        let mut waker = Some(Waker::from(Arc::clone(&woken)));
        let answer = self.request(asker, &mut waker, begun);
        let Answer::Wait { ticket, mailbox } = answer else {
            panic!("it was to wait: {answer:?}");
        };
        Waiter {
            ticket,
            mailbox,
            woken,
            since: begun.since,
            alarm: self.orders.alarm(),
        }
    }

    fn request(&mut self, asker: Asker, waker: &mut Option<Waker>, begun: Begun) -> Answer<Token> {
        self.call(|ledger, now, orders| ledger.request(&asker, waker, &begun, now, orders))
    }

    /// Waiters whose deadlines pass after so many steps each.
    pub(super) fn crowd<const N: usize>(&mut self, step: Duration, steps: [u32; N]) -> [Waiter; N] {
        steps.map(|steps| self.wait(Some(steps * step)))
    }

    /// Takes all owed work.
    pub(super) fn owed(&mut self) -> Vec<Work<Token>> {
        std::iter::from_fn(|| self.ledger.next_work()).collect()
    }

    /// Takes the owed work, of which there must be one piece.
    #[track_caller]
    pub(super) fn only_work(&mut self) -> Work<Token> {
        let mut owed = self.owed();
        assert_eq!(owed.len(), 1, "{owed:?}");
        owed.remove(0)
    }

    /// Takes the opens that are owed. Nothing else may be owed.
    pub(super) fn begin_opens(&mut self) -> Vec<SlotNo> {
        let opens = self.owed().into_iter().map(|work| match work.job {
            Job::Open => work.slot,
            _ => panic!("{work:?} is owed"),
        });
        opens.collect()
    }

    /// Does all opens that are owed. Returns how many there were.
    pub(super) fn open(&mut self) -> usize {
        let slots = self.begin_opens();
        slots.iter().for_each(|slot| self.opened(*slot));
        slots.len()
    }

    pub(super) fn opened(&mut self, slot: SlotNo) {
        self.call(|ledger, now, orders| ledger.opened(slot, token_of(slot), now, orders));
    }

    pub(super) fn fail_open(&mut self, slot: SlotNo) -> AfterFailure {
        self.call(|ledger, now, orders| ledger.open_failed(slot, refused(), now, orders))
    }

    pub(super) fn closed(&mut self, slot: SlotNo) {
        self.call(|ledger, now, orders| ledger.closed(slot, false, now, orders));
    }

    /// Lends a resource that is opened for this caller.
    pub(super) fn lend_new(&mut self) -> Token {
        let waiter = self.wait(None);
        self.open();
        if self.ledger.waiters.is_empty() {
            // As if the alarm had gone off since.
            self.ledger.alarm_at = None;
        }
        waiter.claim()
    }

    /// A caller asks that does not wait.
    pub(super) fn try_as(&mut self, asker: Asker) -> Answer<Token> {
        let begun = begun(self.now, self.now);
        self.request(asker, &mut None, begun)
    }

    pub(super) fn try_lend(&mut self) -> Option<Token> {
        match self.try_as(asker()) {
            Answer::Granted(grant) => Some(grant),
            Answer::NotNow => None,
            answer => panic!("it was to be lent, or not: {answer:?}"),
        }
    }

    /// Lends an idle resource.
    #[track_caller]
    pub(super) fn lend(&mut self) -> Token {
        self.try_lend().expect("one is idle, and fit")
    }

    /// Lends an idle resource to a caller that did not wait, and puts its slot on a tray if it may
    /// be there.
    pub(super) fn lend_on_tray(&mut self) -> (Token, Option<TrayNo>) {
        let grant = self.lend();
        let tray = self.ledger.find_tray(grant.slot);
        if let Some(tray) = tray {
            let (slot, now) = (grant.slot, self.now);
            if let Some(off) = self.trays[tray as usize].take() {
                self.ledger.taken_off(tray, off);
            }
            let ledger = &mut self.ledger;
            let on_tray = ledger.put_on_tray(slot, tray, asker(), now, &mut self.orders);
            self.trays[tray as usize] = Some(on_tray);
        }
        assert_eq!(self.ledger.tray_of(grant.slot), tray);
        (grant, tray)
    }

    /// Takes the slot off this tray, as it was changed there.
    pub(super) fn clear_tray(&mut self, tray: TrayNo, change: impl FnOnce(&mut OnTray<Token>)) {
        let off = self.trays[tray as usize].take();
        let mut off = off.expect("a slot is on it");
        change(&mut off);
        self.ledger.taken_off(tray, off);
    }

    /// Opens so many resources, which are idle then. Upkeep sleeps.
    pub(super) fn stock(&mut self, count: usize) {
        let lent: Vec<_> = (0..count).map(|_| self.lend_new()).collect();
        for grant in lent {
            self.give_back(grant.slot);
        }
        self.upkeep();
    }

    pub(super) fn give_back(&mut self, slot: SlotNo) {
        self.give_back_as(slot, Condition::Good);
    }

    pub(super) fn give_back_as(&mut self, slot: SlotNo, condition: Condition) {
        let token = token_of(slot);
        self.call(|ledger, now, orders| {
            ledger.give_back(slot, token, condition, Manner::Dropped, now, orders)
        });
    }

    pub(super) fn detach(&mut self, slot: SlotNo) {
        self.call(|ledger, now, orders| ledger.detach(slot, now, orders));
    }

    /// Takes the least recently used resource off the shelf, to be judged.
    pub(super) fn take_coldest(&mut self) -> SlotNo {
        let (slot, id) = self.ledger.idle()[0];
        let taken = self.ledger.look_at(slot, id, self.now);
        assert_eq!(taken, Some(token_of(slot)));
        slot
    }

    pub(super) fn judged(&mut self, slot: SlotNo, outcome: Outcome) {
        let token = token_of(slot);
        self.call(|ledger, now, orders| ledger.judged(slot, token, outcome, now, orders));
    }

    /// Puts a resource back on the shelf that was taken off to be judged.
    pub(super) fn put_back(&mut self, slot: SlotNo) {
        let token = token_of(slot);
        self.call(|ledger, now, orders| ledger.put_back(slot, token, now, orders));
    }

    /// The waiter is polled. Returns whether it still waits.
    pub(super) fn look(&mut self, waiter: &Waiter) -> bool {
        let waker = Waker::from(Arc::clone(&waiter.woken));
        self.call(|ledger, now, orders| ledger.look(waiter.ticket, waker, now, orders))
    }

    /// The waiter is dropped.
    pub(super) fn withdraw(&mut self, waiter: &Waiter) {
        let Waiter {
            ticket, mailbox, ..
        } = waiter;
        self.call(|ledger, now, orders| ledger.withdraw(*ticket, mailbox, now, orders));
    }

    /// The alarm that was set for this moment goes off in time. Returns when it goes off next.
    pub(super) fn alarm(&mut self, at: Moment) -> Option<Moment> {
        self.now = self.now.max(at);
        self.call(|ledger, now, orders| ledger.alarm(at, now, orders))
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

    /// One round of the upkeep task.
    pub(super) fn upkeep(&mut self) -> Upkeep {
        self.call(|ledger, now, orders| {
            ledger.stand_in_for_alarm(now, orders);
            ledger.upkeep(now, orders)
        })
    }

    pub(super) fn set_breaker(&mut self, state: BreakerState) {
        self.call(|ledger, now, orders| ledger.set_breaker(None, state, now, orders));
    }

    /// The breaker trips, and begins to recover.
    pub(super) fn recover(&mut self) {
        self.set_breaker(BreakerState::Inactive);
        self.set_breaker(BreakerState::Recovering);
    }

    pub(super) fn close(&mut self) {
        self.call(Ledger::close);
    }

    pub(super) fn status(&self) -> Status {
        self.ledger.status(self.now)
    }
}
