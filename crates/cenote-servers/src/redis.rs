//! Redis: find one, or start a private one.

use std::io;
use std::net::TcpListener;

use crate::Setting;
use crate::certificate::Certificate;
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

/// Returns a server to test against, without a password: the one that the environment names, the
/// one on the standard port, or a private one.
pub fn find() -> io::Result<Found> {
    Found::search(&KIND)
}

/// Starts a private server without a password. A write survives a kill of the server, but not a
/// crash of the machine.
pub fn start() -> io::Result<Server> {
    start_with(&[])
}

/// Starts a private server with these settings, such as `("maxclients", "5")`.
pub fn start_with(settings: &[Setting<'_>]) -> io::Result<Server> {
    let program = obtain("redis-server", "redis-server", KIND.variable)?;
    let args = |_: &Home, port: u16| {
        let port = port.to_string();
        let own = [
            ("port", port.as_str()),
            ("bind", "127.0.0.1"),
            ("save", ""),
            // Each write goes to the system before the reply. The system need not write it to the
            // disk.
            ("appendonly", "yes"),
            ("appendfsync", "no"),
            // How often per second it looks for a request to stop.
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
    // It must not be root, and needs no user of its own.
    Server::start(Home::new("nobody")?, recipe)
}

/// Starts a private server that also has a port for TLS, and returns the URL of that port. If
/// another program takes the port first, another one is tried.
pub fn start_with_tls(certificate: &Certificate) -> io::Result<(Server, String)> {
    const TRIES: u32 = 20;
    let (key, crt) = (&certificate.key, &certificate.crt);
    let mut tries = 1;
    loop {
        let free = TcpListener::bind("127.0.0.1:0")?;
        let port = free.local_addr()?.port().to_string();
        drop(free);
        let settings = [
            ("tls-port", port.as_str()),
            ("tls-key-file", &key.to_string_lossy()),
            ("tls-cert-file", &crt.to_string_lossy()),
            ("tls-ca-cert-file", &crt.to_string_lossy()),
            ("tls-auth-clients", "no"),
        ];
        match start_with(&settings) {
            Ok(server) => return Ok((server, format!("rediss://127.0.0.1:{port}"))),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
    }
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
