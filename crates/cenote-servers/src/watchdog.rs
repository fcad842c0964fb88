//! A small process that cleans up after us if we cannot: killed, interrupted, or gone without a destructor.
//!
//! It reads from a pipe that only we hold. The system closes it with us, however we end. It has a process group of its own, so that an
//! interrupt from the keyboard does not reach it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Each line says which process runs now; an empty one that none does. `done` ends the watch. The end of the pipe is the alarm.
const WATCH: &str = r#"
pid=
while read -r line; do
    pid=$line
    [ "$pid" = done ] && exit
done
if [ -n "$pid" ]; then
    # Whoever inherits the dead may take a while to bury them.
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
    /// If we go, the process that was named last is sent the signal, and the folder is removed.
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
        // If it is gone there is nobody to send home.
        let _ = self.tell("done");
        let _ = self.0.wait();
    }
}
