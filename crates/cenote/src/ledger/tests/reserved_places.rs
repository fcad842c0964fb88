//! Reserved places: when the ledger gives them, takes them back and counts them.

use super::*;

const STEP: Duration = Duration::from_millis(100);

/// A caller that wants a place, now or in the queue.
fn wants_place(rig: &Rig, limit: Duration) -> Begun {
    Begun {
        ask: Ask::Place,
        ..begun(rig.now, rig.now + limit)
    }
}

/// Reserves a place, for a caller that does not wait.
#[track_caller]
fn reserve(rig: &mut Rig) {
    let begun = wants_place(rig, Duration::ZERO);
    let answer =
        rig.call(|ledger, now, orders| ledger.request(&asker(), &mut None, &begun, now, orders));
    assert!(matches!(answer, Answer::Placed), "{answer:?}");
}

#[test]
fn a_place_that_is_not_claimed_in_time_counts_as_one_timeout() {
    let mut rig = Rig::new(of_size(3));
    let lent = rig.lend_new().slot;
    reserve(&mut rig);
    reserve(&mut rig);
    let begun = wants_place(&rig, STEP);
    let sleeper = rig.queue(asker(), begun);
    rig.give_back(lent);
    assert!(sleeper.has_mail());
    assert_eq!(rig.status().reserved, 3);

    rig.sleep_until(rig.now + STEP);

    sleeper.timeout();
    let status = rig.status();
    assert_eq!((status.timed_out, status.reserved), (1, 2));
}

/// Waiters that want a place, and get one each as a lease comes back.
fn placed(rig: &mut Rig, limit: Duration, count: usize) -> Vec<Waiter> {
    let leases: Vec<_> = (0..count).map(|_| rig.lend_new().slot).collect();
    let waiters = (0..count).map(|_| rig.queue(asker(), wants_place(rig, limit)));
    let waiters: Vec<_> = waiters.collect();
    leases.into_iter().for_each(|slot| rig.give_back(slot));
    assert!(waiters.iter().all(Waiter::has_mail));
    waiters
}

#[test]
fn every_place_that_is_not_claimed_in_time_is_taken_back() {
    let mut rig = Rig::new(of_size(2));
    let sleepers = placed(&mut rig, STEP, 2);

    rig.sleep_until(rig.now + STEP);

    sleepers.iter().for_each(|sleeper| drop(sleeper.timeout()));
    assert_eq!((rig.status().timed_out, rig.status().reserved), (2, 0));
}

#[test]
fn a_place_that_was_claimed_leaves_no_trace() {
    let mut rig = Rig::new(of_size(1));

    for _ in 0..10 {
        for waiter in placed(&mut rig, 3600 * SECOND, 1) {
            assert!(matches!(waiter.mailbox.take(), Some(Mail::Place)));
        }
        rig.call(Ledger::unreserve);
        let slot = rig.lend().slot;
        rig.detach(slot);
    }

    assert_eq!(rig.ledger.placed.len(), 1, "the last one");
}

#[test]
fn a_suspended_pool_gives_no_place_when_a_waiter_leaves() {
    let mut rig = Rig::new(of_size(2));
    rig.ledger.suspend();
    let begun = wants_place(&rig, STEP);
    let (first, second) = (rig.queue(asker(), begun), rig.queue(asker(), begun));

    rig.withdraw(&first);

    assert!(!second.has_mail());
    rig.call(Ledger::resume);
    assert!(matches!(second.mailbox.take(), Some(Mail::Place)));
}

#[test]
fn a_waiter_behind_reserved_places_times_out_in_the_queue() {
    let mut rig = Rig::new(of_size(1));
    reserve(&mut rig);
    let waiter = rig.wait(Some(STEP));

    rig.sleep_until(rig.now + STEP);

    assert_eq!(waiter.timeout().phase, Phase::Queued);
}

#[test]
fn a_caller_with_a_place_is_served_at_once_although_others_wait() {
    let mut rig = Rig::new(of_size(1));
    rig.stock(1);
    reserve(&mut rig);
    let _waiter = rig.wait(None);
    let begun = Begun {
        again: true,
        ask: Ask::WithPlace,
        ..begun(rig.now, Moment::NEVER)
    };
    let mut waker = Some(Waker::noop().clone());

    let answer =
        rig.call(|ledger, now, orders| ledger.request(&asker(), &mut waker, &begun, now, orders));

    assert!(matches!(answer, Answer::Granted(_)), "{answer:?}");
}
