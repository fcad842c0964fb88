//! A private server: one process on one port, with a folder of its own.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::home::{Home, random};
use crate::process::{children, is_gone, is_still, signal, wait_until};
use crate::watchdog::Watchdog;

/// RabbitMQ starts within ten seconds, or within a minute on a machine full of tests.
const START_LIMIT: Duration = Duration::from_secs(180);

/// A server that has not stopped by then is killed.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Below the range from which the system chooses ports, so that no other program gets the port
/// while the server is down.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// How to start and stop a server program.
pub(crate) struct Recipe<'a> {
    pub(crate) program: PathBuf,
    /// Returns the arguments for a port.
    pub(crate) args: &'a dyn Fn(&Home, u16) -> io::Result<Vec<String>>,
    /// The text in its log that shows that clients can connect.
    pub(crate) ready: &'static str,
    /// The signal that asks it to stop, without `SIG`.
    pub(crate) stop: &'static str,
    /// The URL before its host, and after its port.
    pub(crate) url: (&'a str, &'a str),
    /// Called after the server was stopped for good.
    pub(crate) clean_up: fn(&Home),
}

/// A private server on a loopback port. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    args: Vec<String>,
    ready: &'static str,
    stop: &'static str,
    url: String,
    port: u16,
    clean_up: fn(&Home),
    child: Option<Child>,
    // The folder is dropped before the watchdog, which would remove it otherwise.
    home: Home,
    watchdog: Watchdog,
}

impl Server {
    /// Starts it on a free port. If another program takes that port first, it tries another one.
    pub(crate) fn start(home: Home, recipe: Recipe<'_>) -> io::Result<Self> {
        let mut server = Self {
            args: Vec::new(),
            program: recipe.program.clone(),
            ready: recipe.ready,
            stop: recipe.stop,
            url: String::new(),
            port: 0,
            clean_up: recipe.clean_up,
            child: None,
            watchdog: Watchdog::new(recipe.stop, home.path())?,
            home,
        };
        let mut tries = 5;
        loop {
            server.choose_port(&recipe)?;
            tries -= 1;
            match server.run() {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                started => return started.map(|()| server),
            }
        }
    }

    fn choose_port(&mut self, recipe: &Recipe<'_>) -> io::Result<()> {
        let (before, after) = recipe.url;
        self.port = free_port()?;
        self.args = (recipe.args)(&self.home, self.port)?;
        self.url = format!("{before}{}{after}", self.addr());
        Ok(())
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its address. It does not change.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns the number of its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Returns its folder, with `data` and `log` in it.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Returns its log since its last start.
    pub fn log(&self) -> String {
        let log = fs::read(self.home.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Stops it in good order, so that its clients are told. Its data and its port stay. A stopped
    /// server stays stopped.
    pub fn stop(&mut self) -> io::Result<()> {
        if let Some(pid) = self.running() {
            signal(self.stop, &[pid])?;
        }
        if !wait_until(STOP_LIMIT, || self.running().is_none()) {
            return self.kill();
        }
        self.ended()
    }

    /// Kills it and all its processes at once, as a crash does. After a restart all data is there
    /// that it had acknowledged.
    pub fn kill(&mut self) -> io::Result<()> {
        if let Some(pid) = self.running() {
            // Stopped first, so that it cannot start more processes.
            signal("STOP", &[pid])?;
            wait_until(STOP_LIMIT, || is_still(pid));
            let all = [children(pid), vec![pid]].concat();
            signal("KILL", &all)?;
            wait_until(STOP_LIMIT, || all.iter().all(|&pid| is_gone(pid)));
        }
        self.ended()
    }

    /// Starts it again on the same port and with the same data. A running server is stopped first.
    pub fn restart(&mut self) -> io::Result<()> {
        self.stop()?;
        self.run()
    }

    fn ended(&mut self) -> io::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.wait()?;
            self.watchdog.rest()?;
        }
        Ok(())
    }

    /// Starts the process and waits until clients can connect.
    fn run(&mut self) -> io::Result<()> {
        let log = File::create(self.home.join("log"))?;
        let mut command = self.home.command(&self.program);
        command.args(&self.args).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // An interrupt from the keyboard must not reach the server: this process or the watchdog
        // stops it.
        let child = command.process_group(0).spawn()?;
        let pid = child.id();
        self.child = Some(child);
        self.watchdog.watch(pid)?;

        wait_until(START_LIMIT, || {
            self.log().contains(self.ready) || self.running().is_none()
        });
        let log = self.log();
        if self.running().is_some() && log.contains(self.ready) {
            return Ok(());
        }
        self.kill()?;
        let in_use = log.contains("in use");
        let kind = if in_use {
            io::ErrorKind::AddrInUse
        } else {
            io::ErrorKind::Other
        };
        let program = self.program.display();
        Err(io::Error::new(
            kind,
            format!("{program} does not start; it said:\n{log}"),
        ))
    }

    /// Returns the number of the process if it runs. The number of an ended process is never used,
    /// because it may belong to another process by now.
    fn running(&mut self) -> Option<u32> {
        let child = self.child.as_mut()?;
        matches!(child.try_wait(), Ok(None)).then(|| child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            // A destructor cannot return an error, and a server that is left behind must not go
            // unseen.
            eprintln!("cenote-servers: {} was not stopped: {error}", self.url);
        }
        (self.clean_up)(&self.home);
    }
}

pub(crate) fn free_port() -> io::Result<u16> {
    let count = u64::from(PORTS.end - PORTS.start);
    for _ in 0..100 {
        let port = PORTS.start + u16::try_from(random() % count).unwrap_or(0);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no free port after a hundred tries",
    ))
}

#[cfg(test)]
mod tests;
