//! When the alarm is set, and whom it wakes.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A pool of one, which is lent.
struct Dry {
    ledger: Ledger<Token, &'static str>,
    now: Moment,
    lent: SlotNo,
}

impl Dry {
    fn new() -> Self {
        let now = crate::rt::now();
        let config = Config {
            max_size: 1,
            ..Config::default()
        };
        let limits = Arc::new(Limits::check(config).expect("these settings are valid"));
        let mut ledger = Ledger::new(limits, false, 0, 0, now);
        let Answer::Wait { ticket, .. } = ledger.asked(asker(), Waker::noop(), now).0 else {
            panic!("nothing is open yet");
        };
        let Some(Work::Open { slot }) = ledger.next_work() else {
            panic!("an open is owed");
        };
        let _ = ledger.opened(slot, 0, None, now).1.delivered();
        let Poll::Ready(Ok(grant)) = ledger.claimed(ticket, Waker::noop(), now).0 else {
            panic!("it was to be lent");
        };
        Self {
            ledger,
            now,
            lent: grant.slot,
        }
    }

    /// Somebody waits who wants to be woken after this long. For when was the alarm set?
    fn wait(&mut self, after: Option<Duration>) -> (Ticket, Arc<Woken>, Option<Moment>) {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let look_at = after.map(|after| self.now + after);
        let mut orders = Orders::default();
        let answer = self
            .ledger
            .request(asker(), &mut Some(waker), look_at, self.now, &mut orders);
        let Answer::Wait { ticket, .. } = answer else {
            panic!("there was something to be had");
        };
        (ticket, woken, orders.alarm)
    }

    /// The alarm that was set for then goes off in time.
    fn alarm(&mut self, at: Moment) -> Option<Moment> {
        self.now = self.now.max(at);
        let (next, mut orders) = self.ledger.alarm(at, self.now);
        orders.call_all(|_| panic!("nobody refused anything"));
        next
    }
}

fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

fn is_woken(woken: &Woken) -> bool {
    woken.0.load(Ordering::Relaxed)
}

#[test]
fn it_is_set_by_the_first_and_by_whoever_must_be_woken_sooner() {
    let mut dry = Dry::new();
    let now = dry.now;

    let set = [5, 7, 5, 3, 4].map(|after| dry.wait(Some(after * SECOND)).2);

    let expected = [
        Some(now + 5 * SECOND),
        None,
        None,
        Some(now + 3 * SECOND),
        None,
    ];
    assert_eq!(set, expected);
}

#[test]
fn who_wakes_by_themselves_sets_no_alarm_and_is_not_woken() {
    let mut dry = Dry::new();
    let (_, woken, set) = dry.wait(None);
    assert_eq!(set, None);
    let (_, _, set) = dry.wait(Some(SECOND));

    let next = dry.alarm(set.expect("the second sets it"));

    assert!(!is_woken(&woken));
    assert_eq!(next, None);
}

#[test]
fn it_wakes_those_who_are_due_and_goes_off_again_for_the_next() {
    let mut dry = Dry::new();
    let now = dry.now;
    let all = [2, 1, 3, 1].map(|after| dry.wait(Some(after * SECOND)).1);

    let next = dry.alarm(now + SECOND);

    assert_eq!(
        all.each_ref().map(|woken| is_woken(woken)),
        [false, true, false, true]
    );
    assert_eq!(next, Some(now + 2 * SECOND));
    assert_eq!(dry.alarm(now + 2 * SECOND), Some(now + 3 * SECOND));
    assert_eq!(dry.alarm(now + 3 * SECOND), None);
    assert!(all.iter().all(|woken| is_woken(woken)));
}

#[test]
fn one_that_was_overtaken_does_nothing() {
    let mut dry = Dry::new();
    let late = dry.wait(Some(2 * SECOND)).2.expect("it is the first");
    let (_, woken, soon) = dry.wait(Some(SECOND));
    let soon = soon.expect("it is sooner");
    assert_eq!(dry.alarm(soon), Some(late));
    assert!(is_woken(&woken));
    let (_, _, sooner) = dry.wait(Some(SECOND / 2));
    let sooner = sooner.expect("it is sooner still");

    assert_eq!(dry.alarm(late), None, "it was overtaken");
    assert_eq!(dry.alarm(sooner), None, "everybody was woken by now");
}

#[test]
fn who_looks_and_waits_on_is_woken_again() {
    let mut dry = Dry::new();
    let (ticket, woken, set) = dry.wait(Some(SECOND));
    dry.alarm(set.expect("it is the first"));
    let again = dry.now + SECOND;
    let waker = Waker::from(Arc::clone(&woken));
    let mut orders = Orders::default();

    let claim = dry
        .ledger
        .claim(ticket, &waker, Some(again), dry.now, &mut orders);

    assert!(claim.is_pending());
    assert_eq!(orders.alarm, Some(again));
    woken.0.store(false, Ordering::Relaxed);
    assert_eq!(dry.alarm(again), None);
    assert!(is_woken(&woken));
}

#[test]
fn nobody_who_was_served_or_left_is_woken_by_it() {
    let mut dry = Dry::new();
    let (_, served, set) = dry.wait(Some(SECOND));
    let (left, gone, _) = dry.wait(Some(SECOND));
    let (_, waits, _) = dry.wait(Some(SECOND));
    let good = (Condition::Good, Manner::Dropped);
    let (_, orders) = dry.ledger.returned(dry.lent, 0, good.0, good.1, dry.now);
    let _ = dry.ledger.withdraw(left, dry.now);

    dry.alarm(set.expect("it is the first"));

    let woken = [served, gone, waits].map(|woken| is_woken(&woken));
    assert_eq!(woken, [false, false, true]);
    assert!(orders.wakes(), "who is served is woken by the return");
}
