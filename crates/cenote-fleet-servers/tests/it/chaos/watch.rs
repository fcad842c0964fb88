//! The observer: counts the sessions of the group every five milliseconds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::CAPACITY;
use super::database::{Admin, Database};

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) counts: u64,
    pub(super) sum: u64,
    pub(super) most: u32,
    pub(super) last: u32,
    /// Counts above the capacity.
    pub(super) over: u64,
    /// The longest time for which every count was above the capacity.
    pub(super) longest_over: Duration,
}

pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    task: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) async fn at(database: &Database) -> Self {
        let mut watch = Self {
            seen: Arc::default(),
            task: None,
        };
        watch.go_on(database).await;
        watch
    }

    /// Begins to count, also after a restart of the server.
    pub(super) async fn go_on(&mut self, database: &Database) {
        self.task.iter().for_each(JoinHandle::abort);
        let (admin, seen) = (database.admin().await, Arc::clone(&self.seen));
        self.task = Some(tokio::spawn(count(admin, seen)));
    }

    pub(super) fn seen(&self) -> Seen {
        *self.seen.lock().unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.iter().for_each(JoinHandle::abort);
    }
}

#[expect(clippy::disallowed_methods, reason = "the ban guards the pool")]
fn now() -> Instant {
    Instant::now()
}

async fn count(mut admin: Admin, seen: Arc<Mutex<Seen>>) {
    let mut over_since = None;
    // It fails when the server restarts.
    while let Some(sessions) = admin.sessions().await {
        let is_over = sessions > CAPACITY;
        let since = *over_since.get_or_insert_with(now);
        {
            let mut seen = seen.lock().unwrap();
            seen.counts += 1;
            seen.sum += u64::from(sessions);
            seen.most = seen.most.max(sessions);
            seen.last = sessions;
            if is_over {
                seen.over += 1;
                seen.longest_over = seen.longest_over.max(since.elapsed());
            }
        }
        if !is_over {
            over_since = None;
        }
        sleep(Duration::from_millis(5)).await;
    }
}
