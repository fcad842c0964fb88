//! The progress line on stderr: rewritten in place on a terminal, now and then a plain line elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use cenote::Pool;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::load::now;
use crate::report::thousands;
use crate::sqlite::SqliteManager;

const ON_TERMINAL: Duration = Duration::from_millis(500);
/// A log is read later, and should stay short.
const IN_LOG: Duration = Duration::from_secs(2);

/// How far a run is that begins now.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pool: Pool<SqliteManager>,
    started: Instant,
    lasts: Duration,
    on_terminal: bool,
}

impl Progress {
    pub(crate) fn new(pool: Pool<SqliteManager>, lasts: Duration) -> Self {
        Self {
            pool,
            started: now(),
            lasts,
            on_terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows it, for as long as it is let.
    pub(crate) async fn keep_showing(self) {
        let pace = if self.on_terminal {
            ON_TERMINAL
        } else {
            IN_LOG
        };
        let mut turns = interval_at((self.started + pace).into(), pace);
        turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            turns.tick().await;
            self.show();
        }
    }

    /// Shows it one last time, and leaves it standing.
    pub(crate) fn end(&self) {
        self.show();
        if self.on_terminal {
            let _ = writeln!(io::stderr());
        }
    }

    fn show(&self) {
        let line = self.line();
        // A line that cannot be shown is no reason to stop.
        let _ = if self.on_terminal {
            // Back to the first column, and what is left of a longer line erased.
            write!(io::stderr(), "\r{line}\x1b[K")
        } else {
            writeln!(io::stderr(), "{line}")
        };
    }

    /// Every operation is one lease, so the pool's own counts say it all.
    fn line(&self) -> String {
        let status = self.pool.status();
        let elapsed = self.started.elapsed().as_secs_f64();
        format!(
            "{elapsed:.1} of {} s  {} operations  {}/s  {} in use  {} waiting",
            self.lasts.as_secs(),
            thousands(status.released),
            thousands((status.released as f64 / elapsed) as u64),
            status.in_use,
            status.waiting,
        )
    }
}
