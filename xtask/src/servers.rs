//! The real servers that tests talk to: found or started before the tests, stopped after them.
//! There are none unless a member's tests depend on `cenote-servers`.

use std::fs;
use std::path::Path;

use cenote_servers::{Found, find_all};

use crate::command::now;
use crate::manifest;

/// Servers for the tests. Dropping this stops the servers that were started for it.
pub(crate) struct Servers(Vec<Found>);

impl Servers {
    pub(crate) fn find() -> Result<Self, String> {
        if !are_needed()? {
            return Ok(Self(Vec::new()));
        }
        let started = now();
        let servers = find_all().map_err(|error| format!("{error}; rerun: cargo xtask test"))?;
        for server in &servers {
            println!("{server}");
        }
        println!("servers: {:.2} s", started.elapsed().as_secs_f64());
        Ok(Self(servers))
    }

    /// The URL of each server, as an environment variable.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let variable = |server: &Found| (server.variable(), server.url().to_owned());
        self.0.iter().map(variable).collect()
    }
}

/// Returns whether the tests of a member depend on `cenote-servers`.
fn are_needed() -> Result<bool, String> {
    let unread = |error| format!("cannot read the manifests ({error}); rerun: cargo xtask test");
    for entry in fs::read_dir("crates").map_err(unread)? {
        let manifest = entry.map_err(unread)?.path().join("Cargo.toml");
        if asks_for_servers(&manifest) {
            return Ok(true);
        }
    }
    Ok(asks_for_servers(Path::new("examples/Cargo.toml")))
}

/// A folder without a manifest needs none.
fn asks_for_servers(manifest: &Path) -> bool {
    let text = fs::read_to_string(manifest).unwrap_or_default();
    manifest::tests_depend_on(&text, "cenote-servers")
}
