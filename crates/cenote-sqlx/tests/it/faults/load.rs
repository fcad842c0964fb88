//! Load during a fault: writers that record acknowledged writes, and a task that times acquires.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use cenote::scope::BindError;
use cenote::{AcquireError, OpenError};
use cenote_sqlx::pool_error;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Trial;
use super::clock::eventually;

const WRITERS: usize = 8;

/// Tasks that run until `stop`.
pub(super) struct Load {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    trial: Arc<Trial>,
    last: AtomicI32,
    failed: AtomicU32,
    over: AtomicBool,
}

impl Load {
    /// Starts the tasks, and waits for some writes. A writer gives a write up after `patience`.
    pub(super) async fn on(trial: &Arc<Trial>, patience: Duration) -> Self {
        let shared = Arc::new(Shared {
            trial: Arc::clone(trial),
            last: AtomicI32::new(0),
            failed: AtomicU32::new(0),
            over: AtomicBool::new(false),
        });
        let mut tasks = JoinSet::new();
        for _ in 0..WRITERS {
            tasks.spawn(write(Arc::clone(&shared), patience));
        }
        tasks.spawn(acquire(Arc::clone(&shared)));
        let load = Self { shared, tasks };
        load.flows().await;
        load
    }

    /// Waits until more writes are acknowledged.
    pub(super) async fn flows(&self) {
        let trial = &self.shared.trial;
        let count = || trial.acknowledged.lock().unwrap().len();
        let before = count();
        eventually("more writes are acknowledged", async || {
            count() > before + 50
        })
        .await;
    }

    /// Stops the tasks. Returns the number of failed writes, and an unused id.
    pub(super) async fn stop(mut self) -> (u32, i32) {
        self.shared.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let next = self.shared.last.load(Ordering::Relaxed) + 1;
        (self.shared.failed.load(Ordering::Relaxed), next)
    }
}

async fn write(shared: Arc<Shared>, patience: Duration) {
    while !shared.over.load(Ordering::Relaxed) {
        let id = shared.last.fetch_add(1, Ordering::Relaxed) + 1;
        let written = timeout(patience, shared.trial.write(id)).await;
        if !matches!(written, Ok(Ok(()))) {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Returns whether the error has the cause of a failed open, or is a timeout.
fn names_a_cause(error: &sqlx::Error) -> bool {
    match pool_error(error) {
        Some(BindError::Acquire(AcquireError::Open { error, .. })) => match error {
            OpenError::Failed(cause) => !cause.to_string().is_empty(),
            _ => true,
        },
        Some(BindError::Acquire(AcquireError::TimedOut(_))) => true,
        _ => false,
    }
}

/// Asserts that every acquire keeps its deadline, and that an error names its cause.
async fn acquire(shared: Arc<Shared>) {
    while !shared.over.load(Ordering::Relaxed) {
        match shared.trial.acquire().await {
            Ok(lease) => drop(lease),
            Err(error) => assert!(names_a_cause(&error), "{error}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}
