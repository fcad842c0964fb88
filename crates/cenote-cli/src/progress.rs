//! The progress line on stderr. A terminal gets one line that is rewritten; a log gets a plain line
//! now and then.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use cenote::Pool;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::load::now;
use crate::report::thousands;
use crate::sqlite::SqliteManager;

const ON_TERMINAL: Duration = Duration::from_millis(500);
/// A log is read later, so it gets few lines.
const IN_LOG: Duration = Duration::from_secs(2);

/// The progress of a run that begins now.
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

    /// Shows the progress until it is dropped.
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

    /// Shows the progress one last time.
    pub(crate) fn end(&self) {
        self.show();
        if self.on_terminal {
            let _ = writeln!(io::stderr());
        }
    }

    fn show(&self) {
        let line = self.line();
        // The run goes on if a line cannot be written.
        let _ = if self.on_terminal {
            // Returns to the first column, and erases the rest of a longer line.
            write!(io::stderr(), "\r{line}\x1b[K")
        } else {
            writeln!(io::stderr(), "{line}")
        };
    }

    /// Every operation is one lease, so the pool's counts are enough.
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
