//! How much memory a crowd of waiters leaves behind, and how many wakers are kept.

use std::sync::Weak;

use super::*;

/// How many seats and mailboxes may be kept for later waiters.
const MOST: usize = 256;

fn living(mailboxes: &[Weak<mailbox::Mailbox<Token>>]) -> usize {
    let living = mailboxes
        .iter()
        .filter(|mailbox| mailbox.strong_count() > 0);
    living.count()
}

#[test]
fn a_crowd_that_was_served_leaves_only_a_few_seats_and_mailboxes() {
    let (mut rig, lent) = Rig::exhausted();
    let crowd: Vec<_> = (0..CROWD).map(|_| rig.wait(None)).collect();
    let mailboxes: Vec<_> = crowd.iter().map(|it| Arc::downgrade(&it.mailbox)).collect();
    assert!(rig.ledger.waiters.seats() >= CROWD);

    for waiter in crowd {
        rig.give_back(lent);
        waiter.claim();
    }
    rig.give_back(lent);

    assert_eq!(rig.status().waiting, 0);
    assert!(rig.ledger.waiters.seats() <= MOST);
    assert!((1..=MOST).contains(&living(&mailboxes)));
}

#[test]
fn a_crowd_that_timed_out_left_or_was_refused_leaves_only_a_few_seats_and_mailboxes() {
    let ends: [fn(&mut Rig, &Waiter); 3] = [
        |rig, _| rig.sleep_until(rig.now + SECOND),
        |rig, waiter| rig.withdraw(waiter),
        |rig, _| rig.set_breaker(BreakerState::Inactive),
    ];
    for end in ends {
        let (mut rig, _) = Rig::exhausted();
        let crowd: Vec<_> = (0..CROWD).map(|_| rig.wait(Some(SECOND))).collect();
        let mailboxes: Vec<_> = crowd.iter().map(|it| Arc::downgrade(&it.mailbox)).collect();

        for waiter in crowd {
            end(&mut rig, &waiter);
        }

        assert_eq!(rig.status().waiting, 0);
        assert!(rig.ledger.waiters.seats() <= MOST);
        assert!(living(&mailboxes) <= MOST);
    }
}

#[test]
fn the_seats_and_mailboxes_of_a_few_waiters_are_used_again() {
    let (mut rig, lent) = Rig::exhausted();
    let mut mailboxes = Vec::new();

    for _ in 0..10 {
        let waiters: Vec<_> = (0..20).map(|_| rig.wait(Some(SECOND))).collect();
        for waiter in waiters {
            mailboxes.push(Arc::downgrade(&waiter.mailbox));
            rig.give_back(lent);
            waiter.claim();
        }
    }

    assert!(rig.ledger.waiters.seats() <= 32);
    mailboxes.sort_by_key(Weak::as_ptr);
    mailboxes.dedup_by(|one, other| one.ptr_eq(other));
    assert!(mailboxes.len() <= 21, "{} were made", mailboxes.len());
}

#[test]
fn a_ticket_of_a_crowd_that_is_gone_finds_no_waiter() {
    let (mut rig, _) = Rig::exhausted();
    let crowd: Vec<_> = (0..2 * MOST).map(|_| rig.wait(Some(SECOND))).collect();
    rig.sleep_until(rig.now + SECOND);
    let others: Vec<_> = (0..MOST).map(|_| rig.wait(None)).collect();

    for waiter in &crowd {
        assert!(!rig.look(waiter), "its wait is over");
        rig.withdraw(waiter);
    }

    assert_eq!(rig.status().waiting, others.len());
    assert_eq!(rig.status().cancelled, 0);
}

#[test]
fn a_waiter_is_woken_by_the_waker_of_its_last_poll() {
    let (mut rig, lent) = Rig::exhausted();
    let mut waiter = rig.wait(None);
    let first = Arc::clone(&waiter.woken);

    for _ in 0..100 {
        waiter.woken = Arc::default();
        assert!(rig.look(&waiter));
        let mut wakers = rig.ledger.queued_wakers();
        let last = wakers.pop().expect("the waker of the last poll");
        assert!(waiter.woken.is_woken_by(&last) && wakers.is_empty());
    }

    assert_eq!(Arc::strong_count(&first), 1, "its wakers are dropped");
    rig.give_back(lent);
    assert_eq!((first.count(), waiter.wakes()), (0, 1));
    waiter.claim();
}

#[test]
fn a_watcher_has_one_waker_however_often_it_is_polled() {
    let (mut rig, lent) = Rig::exhausted();
    let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    let mut watcher = None;

    for woken in [&first, &second] {
        for _ in 0..1000 {
            let waker = Waker::from(Arc::clone(woken));
            drop(rig.ledger.watch(&mut watcher, false, waker));
        }
    }

    let wakers = [&first, &second].map(|woken| Arc::strong_count(woken) - 1);
    assert_eq!(wakers, [0, 1], "that of its last poll");
    rig.detach(lent);
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn a_watcher_that_is_gone_leaves_no_waker() {
    let (mut rig, lent) = Rig::exhausted();
    let (gone, stays) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    let (mut first, mut second) = (None, None);
    drop(
        rig.ledger
            .watch(&mut first, false, Arc::clone(&gone).into()),
    );
    drop(
        rig.ledger
            .watch(&mut second, false, Arc::clone(&stays).into()),
    );

    drop(rig.ledger.unwatch(first.expect("it has a number")));

    assert_eq!(Arc::strong_count(&gone), 1);
    rig.detach(lent);
    assert_eq!((gone.count(), stays.count()), (0, 1));
    assert!(
        rig.ledger
            .unwatch(second.expect("it has a number"))
            .is_none()
    );
}

#[test]
fn a_pool_has_memory_for_no_more_slots_than_it_may_have() {
    for max_size in [1, 3, 6] {
        let mut rig = Rig::new(of_size(max_size));

        rig.stock(max_size);

        assert_eq!(rig.ledger.slots.capacity(), max_size);
    }
}
