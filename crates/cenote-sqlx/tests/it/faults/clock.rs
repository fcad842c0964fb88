//! Time limits for a busy machine: code may be as late as a plain timer is.

use std::future::Future;
use std::time::Duration;

use cenote_testkit::clock::{now, timed};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// How late an acquire may be.
const SLACK: Duration = Duration::from_millis(50);

/// The interval of the plain timer.
const BEAT: Duration = Duration::from_millis(5);

/// Longer than any event takes that happens at all.
const NEVER: Duration = Duration::from_secs(30);

/// Runs `work`, and asserts that it ends within the limit, the slack, and the delay of a plain
/// timer at the same time.
pub(super) async fn by<T>(limit: Duration, work: impl Future<Output = T>) -> T {
    let metronome = Metronome::start();
    let (value, took) = timed(timeout(limit + NEVER, work)).await;
    let late = metronome.stop().await;
    assert!(
        took <= limit + SLACK + late,
        "took {took:?} with a limit of {limit:?}, while a timer was {late:?} late"
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

/// Measures how late a plain timer is in the same runtime: the delay that the machine causes.
struct Metronome {
    over: oneshot::Sender<()>,
    late: tokio::task::JoinHandle<Duration>,
}

impl Metronome {
    fn start() -> Self {
        let (over, mut told) = oneshot::channel();
        let late = tokio::spawn(async move {
            let mut late = Duration::ZERO;
            // One more interval after the end, for a delay of the end itself.
            while told.try_recv().is_err() {
                let due = now() + BEAT;
                sleep(BEAT).await;
                late = late.max(now().saturating_duration_since(due));
            }
            late
        });
        Self { over, late }
    }

    async fn stop(self) -> Duration {
        // The receiver lives until it gets the message.
        let _ = self.over.send(());
        self.late.await.unwrap()
    }
}
