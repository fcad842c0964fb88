//! A small process that cleans up if this process cannot: after a kill, an interrupt, or an exit
//! without destructors.
//!
//! It reads from a pipe whose other end only this process holds. The system closes that end when
//! this process ends, however it ends. The watchdog has a process group of its own, so that an
//! interrupt from the keyboard does not reach it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Each line names the process that runs now. An empty line says that none does, and `done` ends
/// the watch. The end of the pipe means that the owner is gone.
const WATCH: &str = r#"
pid=
while read -r line; do
    pid=$line
    [ "$pid" = done ] && exit
done
if [ -n "$pid" ]; then
    # The process that inherits a zombie may take a while to reap it.
    gone() { ! kill -s 0 "$pid" || grep -q '^State:.Z' "/proc/$pid/status"; }
    kill -s "$1" "$pid"
    for _ in $(seq 100); do
        gone && break
        sleep 0.1
    done
    gone || kill -s KILL "$pid"
fi
rm -rf -- "$2"
"#;

#[derive(Debug)]
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// Starts the watchdog. If this process ends, the watchdog sends the signal to the last named
    /// process and removes the folder.
    pub(crate) fn new(signal: &str, folder: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCH, "watchdog", signal]).arg(folder);
        shell.stdin(Stdio::piped()).stdout(Stdio::null());
        shell.stderr(Stdio::null()).current_dir("/");
        shell.process_group(0).spawn().map(Self)
    }

    pub(crate) fn watch(&mut self, pid: u32) -> io::Result<()> {
        self.tell(&pid.to_string())
    }

    pub(crate) fn rest(&mut self) -> io::Result<()> {
        self.tell("")
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let Some(pipe) = &mut self.0.stdin else {
            return Ok(());
        };
        pipe.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // An error means that the watchdog is gone already.
        let _ = self.tell("done");
        let _ = self.0.wait();
    }
}
