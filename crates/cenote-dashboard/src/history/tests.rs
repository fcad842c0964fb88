//! What a history keeps, and for how long.

use std::time::Duration;

use cenote::Status;

use super::{Depth, EVERY, History, MARK, MOST};
use crate::recorder::Recorder;

fn status(acquired: u64) -> Status {
    let mut status = Status::default();
    (status.max_size, status.in_use, status.acquired) = (10, 3, acquired);
    status
}

#[tokio::test(start_paused = true)]
async fn a_history_is_bounded_and_forgets_the_oldest() {
    let recorder = Recorder::new();
    let mut history = History::new(&recorder, status(0));
    for nth in 1..=1_000 {
        tokio::time::advance(EVERY).await;
        history.add(&status(nth * 10), &recorder, nth, EVERY);
    }

    let view = history.view(Depth::Times);
    assert_eq!(view.time_ms.len(), MOST);
    assert_eq!((view.time_ms[0], view.time_ms[MOST - 1]), (851, 1_000));
    assert_eq!(view.acquired_per_second[0], 5.0);
    assert_eq!(view.times.unwrap().wait_ms.len(), MOST);
    assert_eq!(history.marks.len(), MOST / MARK);
    let (earliest, elapsed) = history.earliest().unwrap();
    assert!(elapsed <= Duration::from_secs(300), "{elapsed:?}");
    assert_eq!(10_000 - earliest.acquired, 5 * elapsed.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_sample_has_the_times_since_the_one_before() {
    let recorder = Recorder::new();
    recorder.waits.record(Duration::from_secs(9));
    let mut history = History::new(&recorder, status(0));
    recorder.waits.record(Duration::from_micros(4));

    history.add(&status(1), &recorder, 1, EVERY);
    history.add(&status(1), &recorder, 2, EVERY);

    let times = history.view(Depth::Times).times.unwrap();
    assert_eq!(times.wait_ms[0].unwrap().p99, 0.004);
    assert_eq!(times.wait_ms[1], None, "nothing happened");
    assert_eq!(history.last(Depth::Counts).unwrap().times, None);
}
