//! Tests of the budget.

use super::Budget;

/// A budget that no other test uses.
fn budget(name: &str, size: usize) -> Budget {
    Budget::of(&format!("test {} {name}", std::process::id()), size).unwrap()
}

#[tokio::test]
async fn a_caller_waits_until_a_slot_is_free() {
    let budget = budget("waits", 2);
    let first = budget.take(1).await.unwrap();
    let second = budget.take(1).await.unwrap();
    assert_ne!(first[0].0, second[0].0);
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { budget.take(1).await.unwrap() }
    });
    while !budget.is_short() {
        tokio::task::yield_now().await;
    }

    drop(first);

    assert_eq!(waiting.await.unwrap()[0].0, 0);
    assert!(!budget.is_short());
}

#[tokio::test]
async fn callers_that_need_several_slots_do_not_wait_for_each_other() {
    let budget = budget("several", 3);
    let callers = (0..8).map(|_| {
        let budget = budget.clone();
        tokio::spawn(async move {
            let slots = budget.take(2).await.unwrap();
            tokio::task::yield_now().await;
            slots.len()
        })
    });

    let callers: Vec<_> = callers.collect();

    for caller in callers {
        assert_eq!(caller.await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_no_lock() {
    let budget = budget("gives_up", 1);
    let held = budget.take(1).await.unwrap();
    let mut waiting = Box::pin(budget.take(1));
    let mut nothing = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut nothing).is_pending());
    assert!(budget.is_short());

    drop(waiting);
    drop(held);

    assert!(!budget.is_short());
    assert_eq!(budget.take(1).await.unwrap().len(), 1);
}
