//! The upkeep task: one per pool. It holds no strong reference while it sleeps, so a forgotten pool dies.

use std::sync::{Arc, Weak};

use crate::bell::Bell;
use crate::manager::Manager;
use crate::rt;
use crate::shared::Shared;

/// Starts the upkeep task, unless there is one. Called on every acquire: a task that ended with its runtime is started anew on the
/// runtime of whoever comes next.
pub(crate) fn start<M: Manager + 'static>(shared: &Arc<Shared<M>>) {
    if shared.bell.is_answered() || !shared.bell.answer() {
        return;
    }
    // Made before the task is: it may be dropped before it was ever polled.
    let watch = Watch {
        shared: Arc::downgrade(shared),
        bell: Arc::clone(&shared.bell),
    };
    rt::spawn(run(watch));
}

struct Watch<M: Manager + 'static> {
    shared: Weak<Shared<M>>,
    bell: Arc<Bell<M>>,
}

async fn run<M: Manager + 'static>(watch: Watch<M>) {
    while let Some(shared) = watch.bell.guest().or_else(|| watch.shared.upgrade()) {
        let next = shared.keep_up();
        drop(shared);
        watch.bell.rung_or_at(next).await;
    }
}

impl<M: Manager + 'static> Drop for Watch<M> {
    fn drop(&mut self) {
        self.bell.abandon();
        // The runtime may be shutting down while somebody waits on another: they start the task there.
        if let Some(shared) = self.shared.upgrade() {
            drop(shared.lock());
            shared.ask_for_help();
        }
    }
}
