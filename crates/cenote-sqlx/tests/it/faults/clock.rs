//! Time limits for a busy machine. How exact a deadline is, the tests of the pool show on a clock
//! of their own.

use std::future::Future;
use std::time::Duration;

use cenote_testkit::clock::timed;
use tokio::time::{sleep, timeout};

/// How late code may be on a busy machine.
const SLACK: Duration = Duration::from_secs(2);

/// The time between two looks.
const BEAT: Duration = Duration::from_millis(5);

/// Longer than any event takes that happens at all.
const NEVER: Duration = Duration::from_secs(30);

/// Runs `work`, and asserts that it ends within the limit and the slack.
pub(super) async fn by<T>(limit: Duration, work: impl Future<Output = T>) -> T {
    let (value, took) = timed(timeout(limit + NEVER, work)).await;
    assert!(
        took <= limit + SLACK,
        "took {took:?} with a limit of {limit:?}"
    );
    value.expect("the work has ended")
}

/// Waits until `holds` returns true.
pub(super) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asked = timeout(NEVER, async {
        while !holds().await {
            sleep(BEAT).await;
        }
    });
    assert!(asked.await.is_ok(), "never: {what}");
}
