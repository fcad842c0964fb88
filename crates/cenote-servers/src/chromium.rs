//! Chromium without a window: a private one with an empty profile, for tests of pages.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::home::Home;
use crate::process::wait_until;
use crate::program::obtain_or;
use crate::server::{Recipe, Server};

/// What it writes before the address at which it takes commands.
const READY: &str = "DevTools listening on ";

/// How long its child processes may take to end after it.
const CHILDREN_LIMIT: Duration = Duration::from_secs(10);

/// Settings of a run that nothing outside can change: no network of its own, no questions, no
/// graphics card.
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // The shared memory of a container may be too small.
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
];

/// A private browser. Dropping it stops it and removes its profile.
#[derive(Debug)]
pub struct Browser(Server);

impl Browser {
    /// Returns the address of its DevTools, which a WebSocket client connects to.
    pub fn devtools(&self) -> String {
        let log = self.0.log();
        let address = log.split(READY).nth(1).unwrap_or_default();
        address.split_whitespace().next().unwrap_or_default().into()
    }

    /// Returns the number of its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.0.pid()
    }

    /// Returns its folder, with `profile` and `log` in it.
    pub fn folder(&self) -> &Path {
        self.0.folder()
    }
}

/// Starts a private browser. It chooses its port itself.
pub fn start() -> io::Result<Browser> {
    let cure = "run `apt-get install chromium` as root";
    let program = obtain_or("chromium", "chromium", cure)?;
    let args = |home: &Home, _: u16| {
        let profile = home.join("profile");
        let own = [format!("--user-data-dir={}", profile.display())];
        let flags = FLAGS.iter().map(|&flag| flag.to_owned());
        Ok(flags.chain(own).chain(["about:blank".to_owned()]).collect())
    };
    let recipe = Recipe {
        program,
        args: &args,
        ready: READY,
        stop: "TERM",
        url: ("http://", ""),
        clean_up: remove_profile,
    };
    // It needs no user of its own.
    Server::start(Home::new("nobody")?, recipe).map(Browser)
}

/// Its child processes outlive it for a moment, and may write to the profile meanwhile. So the
/// profile must be gone several times in a row.
fn remove_profile(home: &Home) {
    let profile = home.join("profile");
    let mut gone = 0;
    wait_until(CHILDREN_LIMIT, || {
        // An error means that a file was added during the removal.
        let _ = fs::remove_dir_all(&profile);
        gone = if profile.exists() { 0 } else { gone + 1 };
        gone > 20
    });
}
