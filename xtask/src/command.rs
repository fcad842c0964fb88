//! A cargo command line: runs it, times it, and says how to run it again.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{self, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The error is one line: the failure, and the command to rerun.
pub(crate) type Outcome = Result<(), String>;

/// Options that make clippy's driver the compiler of the members, with warnings as errors. Lints
/// and tests then share one build. They are no variables, because tests that run cargo would
/// inherit those.
pub(crate) const LINTED: &[&str] = &[
    "--config",
    "build.rustc-workspace-wrapper='clippy-driver'",
    "--config",
    // How `cargo clippy` writes its arguments for the driver: each ends with this mark.
    "env.CLIPPY_ARGS='-Dwarnings__CLIPPY_HACKERY__'",
];

/// `cargo` with its arguments and its variables.
pub(crate) struct Cargo {
    program: String,
    variable: Option<(&'static str, &'static str)>,
    /// Not shown with the command, because they change with every run.
    passing: Vec<(String, String)>,
    args: Vec<String>,
}

impl Cargo {
    /// Arguments as typed, split at blanks.
    pub(crate) fn new(line: &str) -> Self {
        Self::tool("cargo", line)
    }

    /// The same for another program.
    pub(crate) fn tool(program: &str, line: &str) -> Self {
        let args = line.split_whitespace().map(str::to_owned).collect();
        Self {
            program: program.to_owned(),
            variable: None,
            passing: Vec::new(),
            args,
        }
    }

    /// More arguments, taken as they are.
    pub(crate) fn with(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variable = Some((name, value));
        self
    }

    /// Variables that change with every run.
    pub(crate) fn passing(mut self, variables: &[(String, String)]) -> Self {
        self.passing.extend_from_slice(variables);
        self
    }

    /// Runs it with its output shown; it must succeed.
    pub(crate) fn run(&self) -> Outcome {
        println!("$ {self}");
        self.judge(self.command().status().map(Some), Duration::MAX)
    }

    /// Returns whether it succeeds; its output is not shown.
    pub(crate) fn works(&self) -> bool {
        let status = self
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    /// Runs it; it must succeed within `limit`. Its output is shown only if it does not.
    pub(crate) fn run_within(&self, limit: Duration) -> Outcome {
        // A file and not a pipe: a full pipe would stop the command while we wait.
        let said = env::temp_dir().join(format!("cenote-xtask-{}.log", process::id()));
        let outcome = self.judge(self.status_within(limit, &said), limit);
        if outcome.is_err() {
            let said = fs::read(&said).unwrap_or_default();
            eprintln!("{}", String::from_utf8_lossy(&said));
        }
        // Left behind in the temporary folder at worst.
        let _ = fs::remove_file(&said);
        outcome
    }

    /// `None` if the limit passed first.
    fn status_within(&self, limit: Duration, said: &Path) -> io::Result<Option<ExitStatus>> {
        let log = File::create(said)?;
        let mut child = self
            .command()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let started = now();
        while started.elapsed() < limit {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            thread::sleep(Duration::from_millis(10));
        }
        child.kill()?;
        child.wait()?;
        Ok(None)
    }

    fn judge(&self, status: io::Result<Option<ExitStatus>>, limit: Duration) -> Outcome {
        match status {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(format!("failed with {status}; rerun: {self}")),
            Ok(None) => Err(format!("not done after {limit:?}; rerun: {self}")),
            Err(error) => Err(format!("cannot run ({error}); rerun: {self}")),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // They are those of xtask. Build scripts watch them, and would build again what a cargo
        // without xtask has built.
        for (name, _) in env::vars().filter(|(name, _)| names_a_package(name)) {
            command.env_remove(name);
        }
        command.args(&self.args).envs(self.variable);
        command.envs(self.passing.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Returns whether cargo tells a program about its own package by this variable.
fn names_a_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

impl fmt::Display for Cargo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, value)) = self.variable {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "{}", self.program)?;
        for arg in &self.args {
            let quote = match arg {
                arg if arg.contains('\'') => "\"",
                arg if arg.contains([' ', '*']) => "'",
                _ => "",
            };
            write!(f, " {quote}{arg}{quote}")?;
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
