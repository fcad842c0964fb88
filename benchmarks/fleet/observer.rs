//! The observer: counts the sessions of all processes at the server, every five milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::time::{MissedTickBehavior, interval};

use crate::place::connect;
use crate::system::CAPACITY;

const PAUSE: Duration = Duration::from_millis(5);

const SESSIONS: &str = "select count(*) from pg_stat_activity \
     where usename = 'app' and backend_type = 'client backend'";

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) counts: u64,
    /// Counts above the capacity.
    pub(crate) over: u64,
    /// The most sessions.
    pub(crate) most: u32,
}

impl Seen {
    fn add(&mut self, sessions: u32) {
        self.counts += 1;
        self.over += u64::from(sessions > CAPACITY);
        self.most = self.most.max(sessions);
    }
}

/// A thread that counts until it is asked what it has seen.
pub(crate) struct Observer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Seen, String>>,
}

impl Observer {
    pub(crate) fn start(url: &str) -> Self {
        let (url, is_over) = (url.to_owned(), Arc::new(AtomicBool::new(false)));
        let is_asked = Arc::clone(&is_over);
        let thread = thread::spawn(move || observe(&url, &is_asked));
        Self { is_over, thread }
    }

    pub(crate) fn finish(self) -> Result<Seen, String> {
        self.is_over.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        joined.unwrap_or_else(|_| Err("the observer has panicked".to_owned()))
    }
}

fn observe(url: &str, is_over: &AtomicBool) -> Result<Seen, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let seen = runtime.block_on(async {
        let client = connect(url).await?;
        let statement = client.prepare(SESSIONS).await?;
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Seen::default();
        while !is_over.load(Ordering::Relaxed) {
            ticks.tick().await;
            let row = client.query_one(&statement, &[]).await?;
            seen.add(row.get::<_, i64>(0) as u32);
        }
        Ok(seen)
    });
    seen.map_err(|error: tokio_postgres::Error| format!("the observer: {error}"))
}
