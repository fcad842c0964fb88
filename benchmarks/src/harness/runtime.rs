//! The two runtimes of the scenarios.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::runtime::Builder;

/// A boxed task.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The runtime of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// One thread does everything.
    CurrentThread,
    /// Two worker threads. The work is in tasks.
    TwoWorkers,
}

impl Runtime {
    /// Both runtimes.
    pub const ALL: [Self; 2] = [Self::CurrentThread, Self::TwoWorkers];

    /// Returns the name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::CurrentThread => "current-thread",
            Self::TwoWorkers => "2 workers",
        }
    }

    /// Runs `work` to its end in a task of a new runtime. It does not wait for tasks that `work`
    /// left behind.
    pub fn run<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.run_boxed(Box::pin(work))
    }

    /// The work is boxed, so that this is compiled once and not for every pool. The measured code
    /// runs inside.
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

    /// Returns when both workers are awake, so that no round begins with a sleeping one.
    pub async fn wake_all(self) {
        if self == Self::CurrentThread {
            return;
        }
        let barrier = Arc::new(Barrier::new(2));
        let other = Arc::clone(&barrier);
        let woken = tokio::spawn(async move { other.wait() });
        // The task spawned last stays with this worker, so the other worker can take the one
        // before.
        tokio::spawn(async {});
        barrier.wait();
        woken.await.expect("a barrier does not panic");
    }
}

/// Runs each in a task of its own, and returns their results in order.
pub async fn together<T: Send + 'static>(work: Vec<Work<T>>) -> Vec<T> {
    let tasks: Vec<_> = work.into_iter().map(tokio::spawn).collect();
    let mut given = Vec::with_capacity(tasks.len());
    for task in tasks {
        let done = task.await;
        given.push(done.unwrap_or_else(|failed| resume_unwind(failed.into_panic())));
    }
    given
}

/// Pins this thread to one of the processors that it may use. A round is too short for the system
/// to notice that two workers share a processor.
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
        // If it fails, the round is noisier and counts as such.
        let _ = sched_setaffinity(None, &own);
    }
}
