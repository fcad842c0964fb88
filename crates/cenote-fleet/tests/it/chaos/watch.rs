//! The observer: counts the sessions of the group every five milliseconds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};

use super::CAPACITY;

const SESSIONS: &str = "select count(*) from pg_stat_activity \
     where application_name like '%cn:orders:%' and backend_type = 'client backend'";

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
    url: String,
    seen: Arc<Mutex<Seen>>,
    task: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) async fn at(url: &str) -> Self {
        let mut watch = Self {
            url: url.to_owned(),
            seen: Arc::default(),
            task: None,
        };
        watch.go_on().await;
        watch
    }

    /// Begins to count, also after a restart of the server.
    pub(super) async fn go_on(&mut self) {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let seen = Arc::clone(&self.seen);
        self.task = Some(tokio::spawn(count(client, seen)));
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

async fn count(client: Client, seen: Arc<Mutex<Seen>>) {
    let mut over_since = None;
    // It fails when the server restarts.
    while let Ok(row) = client.query_one(SESSIONS, &[]).await {
        let sessions = row.get::<_, i64>(0) as u32;
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
