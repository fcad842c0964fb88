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
