//! The estimate, with times that the test chooses.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A queue that is updated every tenth of a second, with a number of waiters, and a number of
/// returns between two updates.
fn after(updates: u32, waiting: usize, returns: u64) -> Queue {
    let (mut queue, start) = (Queue::default(), now());
    for update in 0..updates {
        queue.update(
            start + SECOND / 10 * update,
            waiting,
            u64::from(update) * returns,
        );
    }
    queue
}

#[test]
fn without_waiters_the_wait_is_zero() {
    let mut queue = after(50, 100, 1);
    assert!(queue.wait > SECOND);

    queue.update(now(), 0, 50);

    assert_eq!(queue.wait, Duration::ZERO);
}

#[test]
fn the_wait_is_the_length_of_the_queue_at_the_pace_of_the_returns() {
    // Ten resources come back each second, and 29 waiters are ahead.
    let queue = after(60, 29, 1);

    assert!(
        (queue.wait.as_secs_f64() - 3.0).abs() < 0.01,
        "{:?}",
        queue.wait
    );
}

#[test]
fn a_queue_that_has_just_begun_refuses_no_request() {
    let queue = after(1, 1000, 0);

    assert_eq!(queue.wait, Duration::ZERO);
}

#[test]
fn without_returns_the_wait_grows_with_time() {
    let (early, late) = (after(10, 4, 0), after(20, 4, 0));

    assert!(early.wait >= SECOND * 4 && late.wait > early.wait);
}

#[test]
fn an_old_pace_is_forgotten() {
    let (mut queue, start) = (Queue::default(), now());
    for update in 0..100 {
        queue.update(start + SECOND / 10 * update, 10, 0);
    }
    // From here on a hundred resources come back each second.
    for update in 100..140 {
        queue.update(
            start + SECOND / 10 * update,
            10,
            u64::from(update - 100) * 10,
        );
    }

    assert!(queue.wait < SECOND / 4, "{:?}", queue.wait);
}

#[test]
fn the_status_of_the_pool_is_read_once_per_interval() {
    let (mut queue, start) = (Queue::default(), now());

    assert!(queue.is_due(start));
    assert!(!queue.is_due(start + LOOK_EVERY / 2));
    assert!(queue.is_due(start + LOOK_EVERY));
}

#[test]
fn the_pace_of_a_queue_is_remembered_after_its_end() {
    let mut queue = after(21, 100, 2);

    queue.update(now(), 0, 100);

    let wait = queue.wait_behind(99);
    assert!(wait > SECOND * 4 && wait < SECOND * 6, "{wait:?}");
}
