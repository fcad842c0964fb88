//! The log: a line for each change that an operator should know, by the facade of the crate
//! `tracing`.

use std::time::Duration;

use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::change::Change;
use crate::fleet::FleetWatch;

/// The time between two groups of lines, so that an engine that comes and goes does not fill the
/// disk. What was undone meanwhile is left out.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes what changes until the member has left. It runs in a task of its own, because a
/// subscriber may block or panic.
pub(crate) async fn keep(mut watch: FleetWatch) {
    let mut before = watch.status();
    info!(target: "cenote", pool = watch.pool(), "joined a fleet: {before}");
    while let Some(status) = watch.changed().await {
        let changes = status.changes_since(&before);
        for change in &changes {
            write(watch.pool(), change);
        }
        before = status;
        if !changes.is_empty() {
            sleep(PAUSE).await;
        }
    }
}

fn write(pool: &str, change: &Change) {
    match change {
        Change::Disputed(true)
        | Change::EngineAway { .. }
        | Change::Fenced(..)
        | Change::Learned(false)
        | Change::LeaseOver
        | Change::LineLost => warn!(target: "cenote", pool, "fleet: {change}"),
        Change::Buried(..)
        | Change::Capacity { .. }
        | Change::Disputed(false)
        | Change::EngineBack
        | Change::Learned(true) => info!(target: "cenote", pool, "fleet: {change}"),
        // A deployment has many of these, in every process.
        Change::Joined(..) | Change::Left(..) | Change::Share { .. } => {
            debug!(target: "cenote", pool, "fleet: {change}");
        }
    }
}
