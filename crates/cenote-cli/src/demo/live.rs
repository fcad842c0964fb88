//! The live view on stderr: a line for each scene, and below it the present state of the pool. A
//! terminal gets one line that is rewritten; a log gets a plain line now and then.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote::Pool;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval_at};

use super::shop::Shop;
use super::wired::Wired;
use crate::clock::now;
use crate::out::{Colour, Paint, thousands};

const ON_TERMINAL: Duration = Duration::from_millis(200);
/// A log is read later, so it gets few lines.
const IN_LOG: Duration = Duration::from_secs(2);

/// The bar has a cell for each connection, if they are not too many.
const WIDEST: usize = 32;

/// The view of a run that begins now.
#[derive(Debug)]
pub(super) struct Live<S: Shop> {
    view: Arc<View<S>>,
    task: JoinHandle<()>,
}

impl<S: Shop> Live<S> {
    pub(super) fn start(pool: &Pool<Wired<S>>, lasts: Duration) -> Self {
        let view = Arc::new(View {
            pool: pool.clone(),
            started: now(),
            lasts,
            on_terminal: io::stderr().is_terminal(),
        });
        let task = tokio::spawn(Arc::clone(&view).keep_showing());
        Self { view, task }
    }

    /// Shows a line that stays.
    pub(super) fn say(&self, text: &str) {
        let paint = Paint::for_stream(self.view.on_terminal);
        let text = match text.split_once(": ") {
            Some((scene, rest)) if !text.starts_with(' ') => {
                format!("{}: {rest}", paint.say(Colour::Bold, scene))
            }
            _ => text.to_owned(),
        };
        // The run goes on if a line cannot be written.
        let _ = match self.view.on_terminal {
            true => write!(io::stderr(), "\r\x1b[K{text}\r\n"),
            false => writeln!(io::stderr(), "{text}"),
        };
    }

    /// Shows the state of this moment, which may be over at the next turn.
    pub(super) fn look(&self) {
        if self.view.on_terminal {
            self.view.show();
        }
    }

    /// Shows the state one last time.
    pub(super) fn end(&self) {
        self.task.abort();
        self.view.show();
    }
}

/// Ends the line that was rewritten, so that a report or an error begins on the next one.
impl<S: Shop> Drop for Live<S> {
    fn drop(&mut self) {
        self.task.abort();
        if self.view.on_terminal {
            let _ = writeln!(io::stderr());
        }
    }
}

#[derive(Debug)]
struct View<S: Shop> {
    pool: Pool<Wired<S>>,
    started: Instant,
    lasts: Duration,
    on_terminal: bool,
}

impl<S: Shop> View<S> {
    async fn keep_showing(self: Arc<Self>) {
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

    fn show(&self) {
        let line = self.line();
        let _ = match self.on_terminal {
            // Returns to the first column, and erases the rest of a longer line.
            true => write!(io::stderr(), "\r{}{line}\x1b[K", self.bar()),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    /// Returns a cell for each slot: in use, idle or empty.
    fn bar(&self) -> String {
        let status = self.pool.status();
        if status.max_size > WIDEST {
            return String::new();
        }
        let used = status.in_use.min(status.max_size);
        let idle = status.idle.min(status.max_size - used);
        let rest = status.max_size - used - idle;
        format!(
            "{}{}{} ",
            "█".repeat(used),
            "░".repeat(idle),
            "·".repeat(rest)
        )
    }

    /// Every operation is one lease, so the pool's counts are enough.
    fn line(&self) -> String {
        let status = self.pool.status();
        let elapsed = self.started.elapsed().as_secs_f64();
        format!(
            "{elapsed:.1} of {} s  {} operations  {}/s  {} in use  {} waiting  breaker {}",
            self.lasts.as_secs(),
            thousands(status.released),
            thousands((status.released as f64 / elapsed) as u64),
            status.in_use,
            status.waiting,
            self.pool.breaker().state(),
        )
    }
}
