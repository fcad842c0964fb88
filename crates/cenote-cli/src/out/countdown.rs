//! A bar on stderr for work that takes a known time. Only a terminal gets it.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::interval_at;

use crate::clock::now;

const PACE: Duration = Duration::from_millis(200);
const WIDTH: usize = 30;

/// A bar that fills while time passes. It is erased when this value is dropped.
#[derive(Debug)]
pub(crate) struct Countdown(Option<JoinHandle<()>>);

impl Countdown {
    pub(crate) fn start(what: impl Into<String>, lasts: Duration) -> Self {
        Self::start_after(Duration::ZERO, what.into(), lasts)
    }

    /// A bar for work that mostly takes no time. It is shown after a second.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    pub(crate) fn after_a_second(what: impl Into<String>, lasts: Duration) -> Self {
        Self::start_after(Duration::from_secs(1), what.into(), lasts)
    }

    fn start_after(delay: Duration, what: String, lasts: Duration) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let started = now();
        Self(Some(tokio::spawn(async move {
            let mut turns = interval_at((started + delay).into(), PACE);
            loop {
                turns.tick().await;
                let line = line(&what, started.elapsed(), lasts);
                // The work goes on if the bar cannot be shown.
                let _ = write!(io::stderr(), "\r{line}\x1b[K");
            }
        })))
    }
}

impl Drop for Countdown {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(what: &str, passed: Duration, lasts: Duration) -> String {
    let part = passed.as_secs_f64() / lasts.as_secs_f64().max(0.001);
    let full = ((part * WIDTH as f64) as usize).min(WIDTH);
    let (full, rest) = ("█".repeat(full), "░".repeat(WIDTH - full));
    let (passed, lasts) = (passed.as_secs_f64(), lasts.as_secs_f64());
    format!("{what} {full}{rest} {passed:.0} of {lasts:.0} s")
}
