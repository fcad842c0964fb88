//! The measured part of S13: tasks that run one statement after another.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::{Load, ROWS, SqlPeer, Work};
use crate::harness::clock::{now, processor_time};
use crate::harness::results::Figure;
use crate::harness::runtime::{self, together};
use crate::harness::stats::percentile;

/// Plays a round on a new runtime and a new, warm pool.
pub fn round<P: SqlPeer>(url: String, load: Load) -> Vec<Figure> {
    run(Box::pin(async move {
        let pool = P::open(&url).await;
        let short = Load {
            lasts: load.lasts / 8,
            ..load
        };
        watch(&pool, short).await;
        let used = processor_time();
        let seen = watch(&pool, load).await;
        let used = processor_time() - used;
        pool.close().await;
        seen.figures(load.work, load.lasts, used)
    }))
}

/// Runs two workers on any processors. A server or the driver's threads need their share, and a
/// thread that a pinned worker starts would be pinned to the same processor.
fn run<T: Send + 'static>(work: runtime::Work<T>) -> T {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be made");
    let done = runtime.block_on(async { tokio::spawn(work).await });
    runtime.shutdown_background();
    done.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))
}

/// The results of tasks.
#[derive(Debug, Default)]
struct Seen {
    /// Answers in time.
    answered: usize,
    /// How long each answer to a read took, including the wait for a connection. Late answers count
    /// too, so that a starving task shows.
    reads: Vec<f64>,
    /// The same for writes.
    writes: Vec<f64>,
}

async fn watch<P: SqlPeer>(pool: &P, load: Load) -> Seen {
    let end = now() + load.lasts;
    let tasks = (0..load.tasks as u64).map(|task| -> runtime::Work<Seen> {
        let random = fastrand::Rng::with_seed(load.seed + task);
        Box::pin(ask(pool.clone(), load.work, random, end))
    });
    let mut all = Seen::default();
    for seen in together(tasks.collect()).await {
        all.answered += seen.answered;
        all.reads.extend(seen.reads);
        all.writes.extend(seen.writes);
    }
    all
}

async fn ask<P: SqlPeer>(pool: P, work: Work, mut random: fastrand::Rng, end: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut asked = now();
    while asked < end {
        let id = random.i32(1..=ROWS);
        let writes = work == Work::Mix && random.u8(0..5) == 0;
        match work {
            Work::One => pool.one().await,
            Work::Mix if writes => pool.update(id).await,
            Work::Mix => pool.read(id).await,
        }
        let answered = now();
        seen.answered += usize::from(answered <= end);
        let kind = if writes {
            &mut seen.writes
        } else {
            &mut seen.reads
        };
        kind.push((answered - asked).as_secs_f64() * 1e6);
        asked = answered;
    }
    seen
}

impl Seen {
    /// Divides the processor time among all answers. The server's processor time is not in it.
    fn figures(&self, work: Work, lasts: Duration, used: Duration) -> Vec<Figure> {
        let took = |micros: &[f64], part| percentile(micros, part).unwrap_or(f64::INFINITY);
        let answers = self.reads.len() + self.writes.len();
        let mut figures = vec![("kops/s", self.answered as f64 / lasts.as_secs_f64() / 1e3)];
        figures.extend(match work {
            Work::One => vec![
                ("p50 µs", took(&self.reads, 0.5)),
                ("p99 µs", took(&self.reads, 0.99)),
                ("p99.9 µs", took(&self.reads, 0.999)),
            ],
            Work::Mix => vec![
                ("read p50 µs", took(&self.reads, 0.5)),
                ("read p99 µs", took(&self.reads, 0.99)),
                ("write p50 µs", took(&self.writes, 0.5)),
                ("write p99 µs", took(&self.writes, 0.99)),
            ],
        });
        figures.push(("cpu µs", used.as_secs_f64() * 1e6 / answers as f64));
        figures
    }
}
