//! The two runtimes that every scenario knows.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::runtime::Builder;

/// Something to do.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Where the tasks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// One thread does everything.
    CurrentThread,
    /// Two worker threads, the work in tasks.
    TwoWorkers,
}

impl Runtime {
    /// Both.
    pub const ALL: [Self; 2] = [Self::CurrentThread, Self::TwoWorkers];

    /// As it stands in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::CurrentThread => "current-thread",
            Self::TwoWorkers => "2 workers",
        }
    }

    /// Runs it to its end in a task of a new runtime. What it left behind is not waited for.
    pub fn run<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.run_boxed(Box::pin(work))
    }

    /// Boxed, so that it is compiled once and not for every pool: what is measured runs inside.
    fn run_boxed<T: Send + 'static>(self, work: Work<T>) -> T {
        let mut builder = match self {
            Self::CurrentThread => Builder::new_current_thread(),
            Self::TwoWorkers => {
                let mut builder = Builder::new_multi_thread();
                let threads = AtomicUsize::new(0);
                builder.worker_threads(2).on_thread_start(move || {
                    keep_to(threads.fetch_add(1, Ordering::Relaxed));
                });
                builder
            }
        };
        let runtime = builder.enable_time().build().expect("threads can be made");
        let done = runtime.block_on(async { tokio::spawn(work).await });
        runtime.shutdown_background();
        done.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))
    }

    /// Returns when no worker sleeps, so that a round does not begin on one.
    pub async fn wake_all(self) {
        if self == Self::CurrentThread {
            return;
        }
        let barrier = Arc::new(Barrier::new(2));
        let other = Arc::clone(&barrier);
        let woken = tokio::spawn(async move { other.wait() });
        // The task spawned last stays with this worker; the one before can be taken by the other.
        tokio::spawn(async {});
        barrier.wait();
        woken.await.expect("a barrier does not panic");
    }
}

/// A task for each, and what they gave, in order.
pub async fn together<T: Send + 'static>(work: Vec<Work<T>>) -> Vec<T> {
    let tasks: Vec<_> = work.into_iter().map(tokio::spawn).collect();
    let mut given = Vec::with_capacity(tasks.len());
    for task in tasks {
        let done = task.await;
        given.push(done.unwrap_or_else(|failed| resume_unwind(failed.into_panic())));
    }
    given
}

/// Keeps this thread to the processor of that number, of those it may use. A round is too short for the system to notice that two workers
/// sit on one processor.
pub fn keep_to(number: usize) {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let mut processors = (0..CpuSet::MAX_CPU)
        .filter(|&it| allowed.is_set(it))
        .cycle();
    if let Some(processor) = processors.nth(number) {
        let mut own = CpuSet::new();
        own.set(processor);
        // Without it the round is noisier, and counted as such.
        let _ = sched_setaffinity(None, &own);
    }
}
