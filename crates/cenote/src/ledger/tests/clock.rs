//! Threads that read the clock in one order and get the lock in another.

use super::*;

/// Who reads the clock before another may get the lock after it.
#[test]
fn a_clock_that_was_read_early_raises_no_alarm() {
    let config = Config {
        max_size: 3,
        check_after_idle: Some(Duration::from_secs(2)),
        ..Config::default()
    };
    let limits = Arc::new(Limits::check(config).expect("these settings are valid"));
    let early = crate::rt::now();
    let late = early + Duration::from_secs(3);
    let mut ledger: Ledger<Token> = Ledger::new(limits, false, 0, 1, early);
    let asker = Asker {
        site: Location::caller(),
        owner: None,
    };
    let mut tickets = Vec::new();
    for token in 0..3 {
        let (answer, _) = ledger.asked(asker, Waker::noop(), early);
        let Answer::Wait { ticket, .. } = answer else {
            panic!("nothing is open yet")
        };
        let Some(Work::Open { slot }) = ledger.next_work() else {
            panic!("an open is owed")
        };
        let _ = ledger.opened(slot, token, None, early).1.delivered();
        tickets.push(ticket);
    }
    let granted = tickets.pop().expect("three asked");
    for ticket in tickets {
        let (claim, _) = ledger.claimed(ticket, Waker::noop(), early);
        let Poll::Ready(Ok(grant)) = claim else {
            panic!("it was granted")
        };
        let (slot, token) = (grant.slot, grant.resource);
        let _ = ledger.returned(slot, token, Condition::Good, Manner::Dropped, early);
    }
    let (answer, _) = ledger.asked(asker, Waker::noop(), late);
    assert!(
        matches!(answer, Answer::Wait { .. }),
        "both idle ones must be checked first"
    );

    let (claim, _) = ledger.claimed(granted, Waker::noop(), early);

    assert!(matches!(claim, Poll::Ready(Ok(_))));
}

/// What was open, or being opened, when everything was invalidated must go, also if whoever brings it looked at the clock before.
#[test]
fn what_was_invalidated_is_closed_whenever_the_clock_was_read_that_it_comes_back_by() {
    let limits = Limits::check(Config::default()).expect("these settings are valid");
    let early = crate::rt::now();
    let late = early + Duration::from_millis(4);
    let mut ledger: Ledger<Token> = Ledger::new(Arc::new(limits), false, 0, 1, early);
    let asker = Asker {
        site: Location::caller(),
        owner: None,
    };
    let open_owed = |ledger: &mut Ledger<Token>| match ledger.next_work() {
        Some(Work::Open { slot }) => slot,
        other => panic!("an open is owed, not {other:?}"),
    };
    let (answer, _) = ledger.asked(asker, Waker::noop(), early);
    let Answer::Wait { ticket, .. } = answer else {
        panic!("nothing is open yet")
    };
    let slot = open_owed(&mut ledger);
    let _ = ledger.opened(slot, 1, None, early).1.delivered();
    let (claim, _) = ledger.claimed(ticket, Waker::noop(), early);
    let Poll::Ready(Ok(lent)) = claim else {
        panic!("it was granted")
    };
    let _ = ledger.asked(asker, Waker::noop(), early);
    let opening = open_owed(&mut ledger);

    let _ = ledger.invalidate(Duration::ZERO, late);
    let (slot, token) = (lent.slot, lent.resource);
    let _ = ledger.returned(slot, token, Condition::Good, Manner::Dropped, early);
    let _ = ledger.opened(opening, 2, None, early);

    for _ in 0..2 {
        let closed = loop {
            match ledger.next_work().expect("two closes are owed") {
                Work::Close { reason, .. } => break reason,
                _ => continue,
            }
        };
        assert_eq!(closed, Reason::Invalidated);
    }
}
