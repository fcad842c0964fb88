//! PgBouncer, in transaction mode, in front of a PostgreSQL server.

use std::fs;
use std::io;

use crate::Setting;
use crate::home::Home;
use crate::postgres;
use crate::program::obtain;
use crate::search::Found;
use crate::server::{Recipe, Server};
use crate::url::Url;

const NAME: &str = "PgBouncer";
const VARIABLE: &str = "CENOTE_PGBOUNCER_URL";

/// Returns a PgBouncer to test against: the one that the environment names, else a private one in
/// front of this PostgreSQL.
pub fn find(postgres_url: &str) -> io::Result<Found> {
    match Found::in_environment(NAME, VARIABLE, postgres::greet)? {
        Some(found) => Ok(found),
        None => Ok(Found::private_one(NAME, VARIABLE, "", start(postgres_url)?)),
    }
}

/// Starts a private one in front of this PostgreSQL. Every client becomes the user of that URL.
pub fn start(postgres_url: &str) -> io::Result<Server> {
    start_with(postgres_url, &[])
}

/// Starts a private one with these settings, such as `("default_pool_size", "5")`.
pub fn start_with(postgres_url: &str, settings: &[Setting<'_>]) -> io::Result<Server> {
    let program = obtain("pgbouncer", "pgbouncer", VARIABLE)?;
    let upstream = Url::parse(postgres_url)?;
    let args = |home: &Home, port: u16| {
        let file = home.join("pgbouncer.ini");
        fs::write(&file, configuration(&upstream, port, settings))?;
        Ok(vec![file.to_string_lossy().into_owned()])
    };
    let path = format!("/{}", upstream.path);
    let recipe = Recipe {
        program,
        args: &args,
        ready: "process up",
        stop: "TERM",
        url: ("postgres://postgres@", &path),
        clean_up: |_| {},
    };
    Server::start(Home::new("postgres")?, recipe)
}

fn configuration(upstream: &Url<'_>, port: u16, settings: &[Setting<'_>]) -> String {
    let mut text = format!(
        "[databases]\n* = host={} port={} user={}",
        upstream.host,
        upstream.port.unwrap_or(5432),
        upstream.user.unwrap_or("postgres"),
    );
    if let Some(password) = upstream.password {
        text += &format!(" password='{}'", password.replace('\'', "''"));
    }
    text += "\n[pgbouncer]\n";
    let port = port.to_string();
    let own = [
        ("listen_addr", "127.0.0.1"),
        ("listen_port", port.as_str()),
        ("unix_socket_dir", ""),
        // Every client is let in, as the user above.
        ("auth_type", "any"),
        ("pool_mode", "transaction"),
        // Drivers send this parameter, and PgBouncer does not know it.
        ("ignore_startup_parameters", "extra_float_digits"),
        ("max_client_conn", "1000"),
        ("default_pool_size", "20"),
    ];
    for (name, value) in own.iter().chain(settings) {
        text += &format!("{name} = {value}\n");
    }
    text
}
