//! When the alarm is set, whom it wakes, and what they do about the others.

use super::*;
use crate::error::Phase;

/// Nobody waits for longer than until they look again.
const STEP: Duration = Duration::from_millis(100);

/// A pool of one, which is lent.
struct Dry {
    ledger: Ledger<Token>,
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

    /// Somebody waits whose time is over after this long. For when was the alarm set?
    fn wait(&mut self, limit: Option<Duration>) -> (Waiting, Option<Moment>) {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let until = limit.map(|limit| self.now + limit);
        let mut orders = Orders::default();
        let answer = self
            .ledger
            .request(asker(), &mut Some(waker), until, self.now, &mut orders);
        let Answer::Wait { ticket, mailbox } = answer else {
            panic!("there was something to be had");
        };
        let waiting = Waiting {
            ticket,
            mailbox,
            woken,
        };
        (waiting, orders.alarm)
    }

    /// So many whose time is over after these many steps.
    fn crowd<const N: usize>(&mut self, steps: [u32; N]) -> [Waiting; N] {
        steps.map(|steps| self.wait(Some(steps * STEP)).0)
    }

    /// One whose time is over says so. Here are the orders that it carries out, and when the alarm must go off next.
    fn time_out(&mut self, waiting: &Waiting) -> (Over, Option<Moment>) {
        let (claim, mut orders) = self
            .ledger
            .timed_out(waiting.ticket, Waker::noop(), self.now);
        orders.call_all(|_| panic!("nobody refused anything"));
        let Poll::Ready(Err(Refusal::TimedOut(over))) = claim else {
            panic!("there was nothing to be had");
        };
        (over, orders.alarm)
    }

    /// The alarm that was set for then goes off in time.
    fn alarm(&mut self, at: Moment) -> Option<Moment> {
        self.now = self.now.max(at);
        let (next, mut orders) = self.ledger.alarm(at, self.now);
        orders.call_all(|_| panic!("nobody refused anything"));
        next
    }
}

type Over = TimeIsUp<&'static str>;

struct Waiting {
    ticket: Ticket,
    mailbox: MailboxRef<Token>,
    woken: Arc<Woken>,
}

impl Waiting {
    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }

    /// Is it in the mailbox that the time is over?
    fn hears(&self) -> Option<Over> {
        match self.mailbox.claim(self.ticket.serial)? {
            Mail::TimeIsUp(over) => Some(over),
            Mail::Grant(_) => panic!("there was nothing to be had"),
        }
    }
}

fn are_woken<const N: usize>(all: &[Waiting; N]) -> [bool; N] {
    all.each_ref().map(Waiting::is_woken)
}

fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

#[test]
fn it_is_set_by_the_first_and_by_whoever_must_be_woken_sooner() {
    let mut dry = Dry::new();
    let now = dry.now;

    let set = [5, 7, 5, 3, 4].map(|after| dry.wait(Some(after * STEP)).1);

    let expected = [Some(now + 5 * STEP), None, None, Some(now + 3 * STEP), None];
    assert_eq!(set, expected);
}

#[test]
fn who_has_much_time_is_woken_to_look_again_before_it_is_over() {
    let mut dry = Dry::new();
    let now = dry.now;

    let (_, set) = dry.wait(Some(3 * HELD_UP_AFTER));

    assert_eq!(set, Some(now + HELD_UP_AFTER));
}

#[test]
fn who_wakes_by_themselves_sets_no_alarm_and_is_not_woken() {
    let mut dry = Dry::new();
    let (patient, set) = dry.wait(None);
    assert_eq!(set, None);
    let (other, set) = dry.wait(Some(STEP));

    dry.alarm(set.expect("the second sets it"));
    dry.time_out(&other);

    assert!(!patient.is_woken() && patient.hears().is_none());
    assert_eq!(dry.ledger.alarm_at, None);
}

#[test]
fn it_wakes_the_first_who_is_due_and_none_of_the_others() {
    let mut dry = Dry::new();
    let now = dry.now;
    let all = dry.crowd([2, 1, 3, 1]);

    let next = dry.alarm(now + STEP);

    assert_eq!(are_woken(&all), [false, true, false, false]);
    assert!(next.is_some_and(|at| at > dry.now), "it looks after them");
}

#[test]
fn who_is_woken_tells_all_others_whose_time_is_over() {
    let mut dry = Dry::new();
    let now = dry.now;
    let all = dry.crowd([2, 1, 3, 1, 1]);
    dry.alarm(now + STEP);

    let (over, next) = dry.time_out(&all[1]);

    assert_eq!(are_woken(&all), [false, true, false, true, true]);
    assert_eq!(next, Some(now + 2 * STEP), "for the next who are due");
    for other in [&all[3], &all[4]] {
        let heard = other.hears().expect("its time is over");
        assert!(Arc::ptr_eq(&heard.seen, &over.seen), "all saw the same");
        assert_eq!(heard.waited(), STEP);
    }
    assert!(all[0].hears().is_none() && all[2].hears().is_none());
    let status = dry.ledger.status(dry.now);
    assert_eq!((status.timed_out, status.waiting), (3, 2));
    assert_eq!(status.wait_time, 3 * STEP);
    assert_eq!(over.seen.status.waiting, 5, "as it was before they left");
}

#[test]
fn each_is_told_what_it_was_waiting_for() {
    let mut dry = Dry::new();
    let _ = dry.ledger.resize(2, dry.now);
    let all = dry.crowd([1, 1, 1]);
    assert!(matches!(
        dry.ledger.next_work(),
        Some(Work::Open { slot: 1 })
    ));
    dry.alarm(dry.now + STEP);

    let (first, _) = dry.time_out(&all[0]);

    let others = [&all[1], &all[2]].map(|other| other.hears().expect("its time is over"));
    assert_eq!(first.seen.phase, Phase::Opening);
    assert_eq!(
        others.map(|over| over.seen.phase),
        [Phase::Queued, Phase::Queued]
    );
}

#[test]
fn who_is_woken_and_waits_on_wakes_the_others() {
    let mut dry = Dry::new();
    let now = dry.now;
    let long = 3 * HELD_UP_AFTER;
    let all = [long, long, HELD_UP_AFTER, HELD_UP_AFTER].map(|it| dry.wait(Some(it)).0);
    dry.alarm(now + HELD_UP_AFTER);
    assert_eq!(are_woken(&all), [true, false, false, false]);
    let mut orders = Orders::default();

    let (ticket, until) = (all[0].ticket, Some(now + long));
    let claim = dry
        .ledger
        .claim(ticket, Waker::noop(), until, dry.now, &mut orders);
    orders.call_all(|_| panic!("nobody refused anything"));

    assert!(claim.is_pending());
    assert_eq!(are_woken(&all), [true; 4]);
    assert_eq!(orders.alarm, Some(now + 2 * HELD_UP_AFTER));
    assert!(all[2].hears().is_none(), "it has to say so itself");
    dry.time_out(&all[3]);
    assert!(all[2].hears().is_some(), "or another whose time is over");
}

#[test]
fn if_whoever_was_woken_does_not_come_it_wakes_all_who_are_due() {
    let mut dry = Dry::new();
    let all = dry.crowd([1, 1, 5, 1]);
    let again = dry.alarm(dry.now + STEP).expect("it goes off again");
    assert_eq!(are_woken(&all), [true, false, false, false]);

    let next = dry.alarm(again);

    assert_eq!(are_woken(&all), [true, true, false, true]);
    assert_eq!(next, dry.ledger.alarm_at);
    assert!(all[1].hears().is_none(), "nobody is told behind their back");
    dry.time_out(&all[3]);
    assert!(all[0].hears().is_some() && all[1].hears().is_some());
    assert!(all[2].hears().is_none());
}

#[test]
fn one_who_is_alone_has_nobody_to_tell() {
    let mut dry = Dry::new();
    let (alone, set) = dry.wait(Some(STEP));

    let next = dry.alarm(set.expect("it is the first"));

    assert!(alone.is_woken());
    assert_eq!(next, None);
    assert_eq!(dry.time_out(&alone).1, None);
}

#[test]
fn one_that_was_overtaken_does_nothing() {
    let mut dry = Dry::new();
    let late = dry.wait(Some(2 * STEP)).1.expect("it is the first");
    let (waiting, soon) = dry.wait(Some(STEP));
    dry.alarm(soon.expect("it is sooner"));
    assert_eq!(dry.time_out(&waiting).1, Some(late));
    let (_, sooner) = dry.wait(Some(STEP / 2));
    let sooner = sooner.expect("it is sooner still");

    assert_eq!(dry.alarm(late), None, "it was overtaken");

    assert!(dry.alarm(sooner).is_some(), "this one was not");
}

#[test]
fn who_looks_and_waits_on_is_woken_again() {
    let mut dry = Dry::new();
    let until = dry.now + 2 * HELD_UP_AFTER;
    let (waiting, set) = dry.wait(Some(2 * HELD_UP_AFTER));
    dry.alarm(set.expect("it is the first"));
    let waker = Waker::from(Arc::clone(&waiting.woken));
    let mut orders = Orders::default();

    let ticket = waiting.ticket;
    let claim = dry
        .ledger
        .claim(ticket, &waker, Some(until), dry.now, &mut orders);

    assert!(claim.is_pending());
    assert_eq!(orders.alarm, Some(until));
    waiting.woken.0.store(false, Ordering::Relaxed);
    assert_eq!(dry.alarm(until), None);
    assert!(waiting.is_woken());
}

#[test]
fn nobody_who_was_served_or_left_is_woken_by_it() {
    let mut dry = Dry::new();
    let (served, set) = dry.wait(Some(STEP));
    let (gone, _) = dry.wait(Some(STEP));
    let (waits, _) = dry.wait(Some(STEP));
    let good = (Condition::Good, Manner::Dropped);
    let (_, orders) = dry.ledger.returned(dry.lent, 0, good.0, good.1, dry.now);
    let _ = dry.ledger.withdraw(gone.ticket, dry.now);

    dry.alarm(set.expect("it is the first"));

    assert_eq!(are_woken(&[served, gone, waits]), [false, false, true]);
    assert!(orders.wakes(), "who is served is woken by the return");
}

#[test]
fn who_leaves_before_hearing_of_it_has_run_out_of_time_and_was_not_cancelled() {
    let mut dry = Dry::new();
    let all = dry.crowd([1, 1]);
    dry.alarm(dry.now + STEP);
    dry.time_out(&all[0]);

    let mut orders = dry.ledger.withdraw(all[1].ticket, dry.now);

    orders.call_all(|_| panic!("nobody refused anything"));
    assert!(all[1].hears().is_none(), "it is not there any more");
    let status = dry.ledger.status(dry.now);
    assert_eq!((status.timed_out, status.cancelled), (2, 0));
}

#[test]
fn who_hears_of_it_from_the_ledger_need_not_look_into_the_mailbox() {
    let mut dry = Dry::new();
    let all = dry.crowd([1, 1]);
    dry.alarm(dry.now + STEP);
    dry.time_out(&all[0]);

    let (claim, _) = dry.ledger.claimed(all[1].ticket, Waker::noop(), dry.now);

    assert!(matches!(
        claim,
        Poll::Ready(Err(Refusal::TimedOut(TimeIsUp { .. })))
    ));
}

/// They leave without a word, so somebody has to look.
#[test]
fn their_seats_are_taken_by_the_next_crowd_once_they_have_heard() {
    let mut dry = Dry::new();
    let mut seats = 0;
    for _ in 0..5 {
        let all = dry.crowd([1; 100]);
        dry.alarm(dry.now + STEP);
        dry.time_out(&all[0]);
        assert!(all[1..].iter().all(|other| other.hears().is_some()));

        let before = std::mem::replace(&mut seats, dry.ledger.queue.seats());

        assert!(before == 0 || before == seats, "{before}, then {seats}");
    }
}

#[test]
fn the_seat_of_one_who_has_not_heard_yet_is_theirs() {
    let mut dry = Dry::new();
    let all = dry.crowd([1; 8]);
    dry.alarm(dry.now + STEP);
    dry.time_out(&all[0]);

    let others = dry.crowd([9; 100]);

    let is_taken = |seat| others.iter().any(|other| other.ticket.seat == seat);
    assert!(all[1..].iter().all(|other| !is_taken(other.ticket.seat)));
    assert!(all[1..].iter().all(|other| other.hears().is_some()));
}
