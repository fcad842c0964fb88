//! The task that drives a connection: whether it still runs, and how it is cut.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The task of a connection. It ends when the connection does, so its end is noticed at once, also
/// while no command is under way. Dropping this cuts the connection.
pub(crate) struct Wire {
    /// Has no sender once the task has ended, in whichever way.
    end: watch::Receiver<()>,
    task: AbortHandle,
    /// An aborted task ends a little later.
    severed: AtomicBool,
}

impl Wire {
    /// Runs the driver in a task, and `afterwards` when the connection has ended by itself.
    pub(crate) fn spawn(
        driver: impl Future<Output = ()> + Send + 'static,
        afterwards: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (alive, end) = watch::channel(());
        let task = tokio::spawn(async move {
            let _alive = alive;
            driver.await;
            afterwards();
        });
        Self {
            end,
            task: task.abort_handle(),
            severed: AtomicBool::new(false),
        }
    }

    /// Returns whether the connection is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.severed.load(Ordering::Acquire) || self.end.has_changed().is_err()
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&self) {
        let mut end = self.end.clone();
        while end.changed().await.is_ok() {}
    }

    /// Cuts the connection. Commands that wait for an answer fail.
    pub(crate) fn sever(&self) {
        self.severed.store(true, Ordering::Release);
        self.task.abort();
    }

    /// Returns a function that cuts the connection from outside.
    pub(crate) fn severer(&self) -> impl FnOnce() + Send + use<> {
        let task = self.task.clone();
        move || task.abort()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("has_ended", &self.has_ended())
            .finish()
    }
}
