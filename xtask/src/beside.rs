//! Steps of the gate that run beside the others, at the lowest priority. They use the time in which
//! the tests wait for servers and the compiler for its last crate.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::time::Instant;

use crate::command::{Outcome, now};

/// A command of xtask in a process of its own. Dropped, it is stopped.
pub(crate) struct Beside {
    command: &'static str,
    child: Child,
    said: PathBuf,
    started: Instant,
}

impl Beside {
    /// Starts a command of xtask, the program, such as `bench --guard`.
    pub(crate) fn start(program: &Path, command: &'static str) -> Result<Self, String> {
        Self::spawn(program, command)
            .map_err(|error| format!("cannot start {command} beside the rest ({error})"))
    }

    fn spawn(program: &Path, command: &'static str) -> io::Result<Self> {
        // A file, so that the two outputs do not mix.
        let name = command.replace(' ', "");
        let said = env::temp_dir().join(format!("cenote-gate-{name}-{}.log", process::id()));
        let log = File::create(&said)?;
        let child = Command::new("nice")
            .args(["-n", "19"])
            .arg(program)
            .args(command.split(' '))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self {
            command,
            child,
            said,
            started: now(),
        })
    }

    /// Waits for its end, and shows its output.
    pub(crate) fn finish(&mut self) -> Outcome {
        let (command, status) = (self.command, self.child.wait());
        let said = fs::read(&self.said).unwrap_or_default();
        println!("{}", String::from_utf8_lossy(&said));
        let seconds = self.started.elapsed().as_secs_f64();
        println!("{command} ran beside the other steps and was seen to end after {seconds:.0} s");
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!(
                "failed with {status}; rerun: cargo xtask {command}"
            )),
            Err(error) => Err(format!("lost ({error}); rerun: cargo xtask {command}")),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It has ended already if the gate got as far as its step.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.said);
    }
}
