//! The real servers that tests talk to: found or started before the tests, stopped after them.
//! A process of `cenote-servers` keeps them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::command::now;

/// Servers for the tests. Dropping this stops the servers that were started for it.
pub(crate) struct Servers {
    variables: Vec<(String, String)>,
    keeper: Child,
}

impl Servers {
    /// One of each kind.
    pub(crate) fn find() -> Result<Self, String> {
        Self::keep("cargo run --quiet -p cenote-servers -- find")
    }

    pub(crate) fn find_postgres() -> Result<Self, String> {
        Self::keep("cargo run --quiet -p cenote-servers -- find postgres")
    }

    fn keep(line: &str) -> Result<Self, String> {
        let failed = |why: String| format!("no servers: {why}; rerun: {line}");
        let started = now();
        let mut keeper = Command::new("cargo")
            .args(line.split(' ').skip(1))
            .stdin(Stdio::piped()) // it ends with its input
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let said = keeper.stdout.take().map(BufReader::new);
        let mut servers = Self {
            variables: Vec::new(),
            keeper,
        };
        for line in said.into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(|error| failed(error.to_string()))?;
            if line.is_empty() {
                println!("servers: {:.2} s", started.elapsed().as_secs_f64());
                return Ok(servers);
            }
            let (variable, whence) = line.split_once(" # ").unwrap_or((&line, ""));
            println!("{whence}");
            let variable = variable.split_once('=');
            let variable = variable.ok_or_else(|| failed(format!("`{line}` names none")))?;
            let (name, url) = variable;
            servers.variables.push((name.to_owned(), url.to_owned()));
        }
        Err(failed("one was neither found nor started".to_owned()))
    }

    /// The URL of each server, as an environment variable.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        if let Err(error) = self.keeper.wait() {
            eprintln!("xtask: servers of the tests may be left behind: {error}");
        }
    }
}
