//! What is granted and not there yet: whoever leaves, is sent away, looks or runs out of time meanwhile.

use super::*;
use crate::status::Health;

/// One lease is out, and somebody waits for it.
struct Post {
    ledger: Ledger<Token>,
    now: Moment,
    lent: SlotNo,
    ticket: Ticket,
    mailbox: MailboxRef<Token>,
}

impl Post {
    fn new() -> Self {
        let now = crate::rt::now();
        let config = Config {
            max_size: 1,
            ..Config::default()
        };
        let limits = Arc::new(Limits::check(config).expect("these settings are valid"));
        let mut ledger = Ledger::new(limits, false, 0, 0, now);
        let (ticket, _) = wait(&mut ledger, now);
        let Some(Work::Open { slot }) = ledger.next_work() else {
            panic!("an open is owed");
        };
        let _ = ledger.opened(slot, 0, None, now).1.delivered();
        let claim = ledger.claimed(ticket, Waker::noop(), now).0;
        assert!(matches!(claim, Poll::Ready(Ok(_))));
        let (ticket, mailbox) = wait(&mut ledger, now);
        Self {
            ledger,
            now,
            lent: slot,
            ticket,
            mailbox,
        }
    }

    /// The lease ends, and what was granted is on its way.
    fn give_back(&mut self) -> Orders<Token> {
        let mut orders = Orders::default();
        let (good, dropped) = (Condition::Good, Manner::Dropped);
        let (ledger, now) = (&mut self.ledger, self.now);
        ledger.give_back(self.lent, 0, good, dropped, now, &mut orders);
        orders
    }

    /// It comes. Is it refused?
    fn deliver(&mut self, mut orders: Orders<Token>) -> bool {
        let mut refused = None;
        orders.call_all(|grant| refused = Some(grant));
        let is_refused = refused.is_some();
        if let Some(grant) = refused {
            let _ = self.ledger.refused(grant, self.now).delivered();
        }
        is_refused
    }

    fn claim(&mut self, waker: &Waker) -> Poll<Claim<Token>> {
        self.ledger.claimed(self.ticket, waker, self.now).0
    }
}

fn wait(ledger: &mut Ledger<Token>, now: Moment) -> (Ticket, MailboxRef<Token>) {
    let asker = Asker {
        site: Location::caller(),
        owner: None,
    };
    match ledger.asked(asker, Waker::noop(), now).0 {
        Answer::Wait { ticket, mailbox } => (ticket, mailbox),
        answer => panic!("it was to wait: {answer:?}"),
    }
}

#[test]
fn what_comes_to_one_who_has_left_is_passed_on() {
    let mut post = Post::new();
    let (_, next) = wait(&mut post.ledger, post.now);
    let orders = post.give_back();

    let _ = post.ledger.withdraw(post.ticket, post.now);
    let before = post.ledger.status(post.now);
    assert!(post.deliver(orders), "nobody wants it any more");

    assert!(next.claim(1).is_some(), "the next has it");
    assert_eq!(
        (before.acquired, before.released, before.cancelled),
        (1, 1, 1)
    );
    let status = post.ledger.status(post.now);
    assert_eq!((status.in_use, status.waiting, status.released), (1, 0, 1));
}

#[test]
fn a_seat_is_free_again_when_its_lease_has_ended_or_what_came_was_refused() {
    let mut post = Post::new();
    let orders = post.give_back();
    let _ = post.ledger.withdraw(post.ticket, post.now);
    post.deliver(orders);
    let asker = Asker {
        site: Location::caller(),
        owner: None,
    };
    let (taken, _) = post.ledger.try_request(asker, post.now);
    assert!(matches!(taken, Ok(Some(_))));

    for _ in 0..3 {
        let (ticket, mailbox) = wait(&mut post.ledger, post.now);
        let orders = post.give_back();
        post.deliver(orders);
        assert!(mailbox.claim(ticket.serial).is_some());
    }

    assert_eq!(post.ledger.queue.seats(), 2, "one who holds, one who waits");
}

#[test]
fn what_comes_to_one_who_has_left_is_idle_if_nobody_waits() {
    let mut post = Post::new();
    let orders = post.give_back();
    let _ = post.ledger.withdraw(post.ticket, post.now);

    post.deliver(orders);

    let status = post.ledger.status(post.now);
    assert_eq!((status.idle, status.in_use, status.acquired), (1, 0, 1));
    assert_eq!(post.ledger.slots[0].uses, 1, "it was used once");
    let (again, _) = post.ledger.try_request(
        Asker {
            site: Location::caller(),
            owner: None,
        },
        post.now,
    );
    assert!(matches!(again, Ok(Some(Grant { uses: 2, .. }))));
}

#[test]
fn who_is_sent_away_while_it_is_on_its_way_hears_so_when_it_has_come() {
    let mut post = Post::new();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let orders = post.give_back();

    let _ = post.ledger.close(post.now);
    assert!(post.claim(&waker).is_pending(), "it is not back yet");
    assert!(post.deliver(orders), "a closed pool lends nothing");

    assert!(woken.0.load(Ordering::Relaxed), "whoever looked is woken");
    assert!(matches!(
        post.claim(&waker),
        Poll::Ready(Err(Refusal::Closed))
    ));
    let work = post.ledger.next_work();
    assert!(matches!(work, Some(Work::Close { .. })), "{work:?}");
}

#[test]
fn when_the_breaker_trips_what_is_on_its_way_comes_back() {
    let mut post = Post::new();
    let orders = post.give_back();

    let _ = post
        .ledger
        .set_breaker(None, BreakerState::Inactive, post.now);
    assert!(post.deliver(orders));

    let claim = post.claim(Waker::noop());
    let told = matches!(claim, Poll::Ready(Err(Refusal::Unavailable { .. })));
    assert!(told, "{claim:?}");
    assert_eq!(post.ledger.status(post.now).idle, 1);
}

#[test]
fn who_looks_while_it_is_on_its_way_is_woken_when_it_comes() {
    let mut post = Post::new();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let orders = post.give_back();

    assert!(post.claim(&waker).is_pending());
    assert!(!woken.0.load(Ordering::Relaxed));
    assert!(!post.deliver(orders));

    assert!(woken.0.load(Ordering::Relaxed));
    assert!(matches!(post.claim(&waker), Poll::Ready(Ok(_))));
}

#[test]
fn who_runs_out_of_time_while_it_is_on_its_way_still_gets_it() {
    let mut post = Post::new();
    let orders = post.give_back();

    let (told, _) = post.ledger.timed_out(post.ticket, Waker::noop(), post.now);
    assert!(told.is_pending(), "{told:?}");
    post.deliver(orders);
    let (told, _) = post.ledger.timed_out(post.ticket, Waker::noop(), post.now);

    assert!(matches!(told, Poll::Ready(Ok(_))), "{told:?}");
    assert_eq!(post.ledger.status(post.now).timed_out, 0);
}

#[test]
fn what_was_claimed_without_a_word_is_held_and_cannot_be_taken_back() {
    let mut post = Post::new();
    let orders = post.give_back();
    post.deliver(orders);
    assert_eq!(post.ledger.status(post.now).acquired, 1, "not claimed yet");
    assert_eq!(post.ledger.holders(post.now).len(), 0);

    let grant = post.mailbox.claim(post.ticket.serial);
    assert!(grant.is_some());

    assert_eq!(post.ledger.status(post.now).acquired, 2);
    assert_eq!(post.ledger.holders(post.now).len(), 1);
    let _ = post.ledger.close(post.now);
    assert_eq!(post.ledger.status(post.now).in_use, 1, "it is out");
    assert!(post.ledger.next_work().is_none(), "and not closed");
}

#[test]
fn waits_are_counted_once_however_they_end() {
    let mut post = Post::new();
    let second = Duration::from_secs(1);
    let waited = |post: &Post| post.ledger.status(post.now).wait_time;
    post.now += second;
    let orders = post.give_back();
    assert_eq!(waited(&post), second, "it waits no more");

    post.now += second;
    let _ = post.ledger.close(post.now);
    assert_eq!(waited(&post), second);
    post.deliver(orders);
    assert_eq!(waited(&post), second);

    post.now += second;
    assert!(post.claim(Waker::noop()).is_ready());
    assert_eq!(waited(&post), 3 * second, "it waited until it was told");
}

#[test]
fn a_slot_that_is_reserved_is_no_progress() {
    let now = crate::rt::now();
    let limits = Arc::new(Limits::check(Config::default()).expect("the default is valid"));
    let mut ledger: Ledger<Token> = Ledger::new(limits, false, 0, 0, now);
    wait(&mut ledger, now);
    let later = now + Duration::from_secs(3600);
    wait(&mut ledger, later);

    let health = ledger.health(later);
    assert!(matches!(health, Health::Stuck { .. }), "{health:?}");
}

#[test]
fn what_is_granted_and_never_claimed_is_a_leak_from_its_grant_on() {
    let mut post = Post::new();
    let orders = post.give_back();
    post.deliver(orders);
    let leaks = |post: &mut Post| post.ledger.upkeep(post.now).0.leaked.len();

    post.now += Duration::from_secs(29);
    assert_eq!(leaks(&mut post), 0);
    post.now += Duration::from_secs(1);

    assert_eq!(leaks(&mut post), 1);
    assert_eq!(leaks(&mut post), 0, "told of once");
}
