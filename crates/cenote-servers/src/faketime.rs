//! faketime: a program whose wall clock is wrong.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::program::obtain_or;

/// Debian has a folder here for each machine type, and the library below it.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Makes the wall clock of a program wrong by `offset`, such as `"+1h"`. Clocks that only measure
/// time are right.
pub fn set(command: &mut Command, offset: &str) -> io::Result<()> {
    command.env("LD_PRELOAD", library()?);
    command.env("FAKETIME", offset);
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Ok(())
}

/// The program `faketime` would start another process, which signals do not reach.
fn library() -> io::Result<PathBuf> {
    let cure = "run `apt-get install faketime` as root";
    obtain_or("faketime", "faketime", cure)?;
    let folders = fs::read_dir(LIBRARIES)?.filter_map(Result::ok);
    let mut libraries = folders.map(|folder| folder.path().join(LIBRARY));
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{LIBRARY} is missing"));
    libraries.find(|path| path.is_file()).ok_or_else(missing)
}
