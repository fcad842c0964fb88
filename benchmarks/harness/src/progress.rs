//! The progress bar on stderr: rewritten in place on a terminal, nothing elsewhere.

use std::io::{self, IsTerminal, Write};

const WIDTH: usize = 30;

/// How far a scenario is.
#[derive(Debug)]
pub struct Progress {
    title: String,
    steps: usize,
    done: usize,
    on_terminal: bool,
}

impl Progress {
    /// So many steps, none done.
    pub fn new(scenario: &str, part: &str, steps: usize) -> Self {
        let progress = Self {
            title: format!("{scenario} {part}"),
            steps,
            done: 0,
            on_terminal: io::stderr().is_terminal(),
        };
        progress.show();
        progress
    }

    /// One more is done.
    pub fn step(&mut self) {
        self.done += 1;
        self.show();
    }

    fn show(&self) {
        if !self.on_terminal {
            return;
        }
        let full = WIDTH * self.done / self.steps.max(1);
        let (full, rest) = ("█".repeat(full), "░".repeat(WIDTH.saturating_sub(full)));
        // A bar that cannot be shown is no reason to stop.
        let _ = write!(
            io::stderr(),
            "\r{:<24} {full}{rest} {}/{}\x1b[K",
            self.title,
            self.done,
            self.steps
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.on_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
