//! The progress bar on stderr. It is rewritten in place on a terminal, and absent elsewhere.

use std::io::{self, IsTerminal, Write};

const WIDTH: usize = 30;

/// The progress of a scenario.
#[derive(Debug)]
pub struct Progress {
    title: String,
    steps: usize,
    done: usize,
    on_terminal: bool,
}

impl Progress {
    /// Starts with no steps done.
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

    /// Counts one more step as done.
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
        // The run goes on if the bar cannot be written.
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
