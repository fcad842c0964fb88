//! Redis: find one, or start a private one.

use std::io;

use crate::Setting;
use crate::home::Home;
use crate::program::obtain;
use crate::search::{Found, Kind};
use crate::server::{Recipe, Server};
use crate::url::Url;
use crate::wire::{Welcome, Wire, foreign, refused};

pub(crate) const KIND: Kind = Kind {
    name: "Redis",
    variable: "CENOTE_REDIS_URL",
    standard: "redis://127.0.0.1:6379",
    greet,
    start,
};

const PORT: u16 = 6379;

/// No password: the one that the environment names, on the standard port, or a private one.
pub fn find() -> io::Result<Found> {
    Found::search(&KIND)
}

/// A private one, no password. A write survives a kill of its process, not one of the machine.
pub fn start() -> io::Result<Server> {
    start_with(&[])
}

/// A private one with these settings: `("maxclients", "5")`.
pub fn start_with(settings: &[Setting<'_>]) -> io::Result<Server> {
    let program = obtain("redis-server", "redis-server", KIND.variable)?;
    let args = |_: &Home, port: u16| {
        let port = port.to_string();
        let own = [
            ("port", port.as_str()),
            ("bind", "127.0.0.1"),
            ("save", ""),
            // Each write is given to the system before it is answered; the system need not bring it to the disk.
            ("appendonly", "yes"),
            ("appendfsync", "no"),
            // How often it looks whether it was asked to stop.
            ("hz", "100"),
        ];
        let all = own.iter().chain(settings);
        Ok(all
            .flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()])
            .collect())
    };
    let recipe = Recipe {
        program,
        args: &args,
        ready: "Ready to accept connections",
        stop: "TERM",
        url: ("redis://", ""),
        clean_up: |_| {},
    };
    // It needs no user of its own, only not to be root.
    Server::start(Home::new("nobody")?, recipe)
}

fn greet(url: &Url<'_>) -> io::Result<Welcome> {
    let mut wire = Wire::connect(url, PORT)?;
    wire.send(b"PING\r\n")?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") && line.len() < 200 {
        line.extend(wire.read::<1>()?);
    }
    match line.as_slice() {
        b"+PONG\r\n" => Ok(Welcome::LetIn),
        [b'-', b'N', b'O', b'A', b'U', b'T', b'H', ..] => Ok(Welcome::AsksPassword),
        [b'-', error @ ..] => Err(refused(error)),
        _ => Err(foreign()),
    }
}
