//! Operations that begin at a fixed rate, whether or not earlier ones have ended.
//!
//! The time of an operation counts from the moment at which it should have begun. So a stall of the
//! server is seen by all operations that should have begun meanwhile. A closed loop sends fewer
//! operations during a stall, and leaves out the worst times: coordinated omission.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedSender};

use super::figures::Figures;
use crate::clock::now;
use crate::failure::Failure;
use crate::service::Service;

/// More operations than this under way at once would only use up memory.
const MOST_UNDER_WAY: u64 = 100_000;

type Outcome = (Duration, Result<(), Failure>);

pub(crate) async fn open_loop(
    service: &Arc<Service>,
    rate: u32,
    lasts: Duration,
) -> Result<Figures, Failure> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let starter = Starter {
        service: Arc::clone(service),
        tell,
        under_way: Arc::default(),
        skipped: Arc::default(),
    };
    let (skipped, started) = (Arc::clone(&starter.skipped), now());
    let runtime = Handle::current();
    // A thread sleeps more exactly than a task. It ends when the receiver is gone.
    thread::Builder::new()
        .name("arrivals".to_owned())
        .spawn(move || starter.start_all(&runtime, started, rate, lasts))?;
    let mut figures = Figures::new()?;
    while let Some((time, result)) = told.recv().await {
        figures.record(time, result);
    }
    figures.skipped = skipped.load(Ordering::Relaxed);
    figures.took = started.elapsed();
    Ok(figures)
}

struct Starter {
    service: Arc<Service>,
    tell: UnboundedSender<Outcome>,
    under_way: Arc<AtomicU64>,
    skipped: Arc<AtomicU64>,
}

impl Starter {
    fn start_all(self, runtime: &Handle, started: Instant, rate: u32, lasts: Duration) {
        let count = (lasts.as_secs_f64() * f64::from(rate)) as u64;
        for nth in 0..count {
            let due = started + Duration::from_secs_f64(nth as f64 / f64::from(rate));
            let ahead = due.saturating_duration_since(now());
            if !ahead.is_zero() {
                thread::sleep(ahead);
            }
            if self.tell.is_closed() {
                return;
            }
            self.start(runtime, due);
        }
    }

    fn start(&self, runtime: &Handle, due: Instant) {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= MOST_UNDER_WAY {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (service, tell) = (Arc::clone(&self.service), self.tell.clone());
        let under_way = Arc::clone(&self.under_way);
        runtime.spawn(async move {
            let result = service.run().await;
            under_way.fetch_sub(1, Ordering::Relaxed);
            // The receiver is gone if the program was interrupted.
            let _ = tell.send((due.elapsed(), result));
        });
    }
}
