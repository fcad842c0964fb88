//! Time limits that are fair on a loaded machine: what a plain timer is late, others may be late too.

use std::future::Future;
use std::time::Duration;

use cenote_testkit::clock::{now, timed};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// By how much an acquire may miss its deadline.
const SLACK: Duration = Duration::from_millis(50);

/// How often the plain timer rings.
const BEAT: Duration = Duration::from_millis(5);

/// Longer than anything takes that happens at all.
const NEVER: Duration = Duration::from_secs(30);

/// Runs `work`, and fails if it ends later than it may: the limit, the slack, and what a plain timer was late meanwhile.
pub(super) async fn by<T>(limit: Duration, work: impl Future<Output = T>) -> T {
    let metronome = Metronome::start();
    let (value, took) = timed(timeout(limit + NEVER, work)).await;
    let late = metronome.stop().await;
    assert!(
        took <= limit + SLACK + late,
        "it took {took:?}, may take {limit:?}, and a timer was {late:?} late"
    );
    value.expect("it has ended")
}

/// Asks until it holds.
pub(super) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asked = timeout(NEVER, async {
        while !holds().await {
            sleep(BEAT).await;
        }
    });
    assert!(asked.await.is_ok(), "never: {what}");
}

/// A plain timer beside the work, in the same runtime: the most that it is late is what the machine is to blame for.
struct Metronome {
    over: oneshot::Sender<()>,
    late: tokio::task::JoinHandle<Duration>,
}

impl Metronome {
    fn start() -> Self {
        let (over, mut told) = oneshot::channel();
        let late = tokio::spawn(async move {
            let mut late = Duration::ZERO;
            // One more beat after the end, for what held up the end.
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
        // It listens until it is told.
        let _ = self.over.send(());
        self.late.await.unwrap()
    }
}
