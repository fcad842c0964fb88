//! What the program prints: tables, numbers, colours on a terminal, JSON for machines.

mod countdown;
mod numbers;
mod paint;
pub(crate) mod svg;
mod table;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

pub(crate) use countdown::Countdown;
pub(crate) use numbers::{short_time, thousands};
pub(crate) use paint::{Colour, Paint};
pub(crate) use table::Table;

/// Prints one line about an error on stderr.
pub(crate) fn complain(text: &str) {
    let paint = Paint::for_stream(io::stderr().is_terminal());
    // There is no other place to say that stderr is closed.
    let _ = writeln!(io::stderr(), "{} {text}", paint.say(Colour::Red, "error:"));
}

/// Prints text on stdout. A reader that has gone away, like `head`, is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints a value as JSON on stdout.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Returns the colours for stdout.
pub(crate) fn paint() -> Paint {
    Paint::for_stream(io::stdout().is_terminal())
}
