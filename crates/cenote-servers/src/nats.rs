//! NATS with JetStream: find one, or start a private one.

use std::io;

use crate::Setting;
use crate::home::Home;
use crate::program::obtain;
use crate::search::{Found, Kind};
use crate::server::{Recipe, Server};
use crate::url::Url;
use crate::wire::{Welcome, Wire, foreign, refused};

pub(crate) const KIND: Kind = Kind {
    name: "NATS",
    variable: "CENOTE_NATS_URL",
    standard: "nats://127.0.0.1:4222",
    greet,
    start,
};

const PORT: u16 = 4222;

/// The longest line before the first reply. The server's description of itself is shorter.
const LONGEST: usize = 8 * 1024;

/// Returns a server to test against, with JetStream and without a password: the one that the
/// environment names, the one on the standard port, or a private one.
pub fn find() -> io::Result<Found> {
    Found::search(&KIND)
}

/// Starts a private server with JetStream and without a password. Its streams survive a stop, and
/// its last writes may not survive a kill.
pub fn start() -> io::Result<Server> {
    start_with(&[])
}

/// Starts such a server with these options of its command line, such as `("tls", "true")`.
pub fn start_with(settings: &[Setting<'_>]) -> io::Result<Server> {
    let program = obtain("nats-server", "nats-server", KIND.variable)?;
    let args = |home: &Home, port: u16| {
        let (port, data) = (port.to_string(), home.join("data"));
        let data = data.to_string_lossy();
        let own = ["-a", "127.0.0.1", "-p", &port, "-js", "-sd", &data];
        let more = settings.iter();
        let more = more.map(|(name, value)| format!("--{name}={value}"));
        Ok(own.map(str::to_owned).into_iter().chain(more).collect())
    };
    let recipe = Recipe {
        program,
        args: &args,
        ready: "Server is ready",
        stop: "TERM",
        url: ("nats://", ""),
        clean_up: |_| {},
    };
    // It needs no user of its own.
    Server::start(Home::new("nobody")?, recipe)
}

/// Logs in without a password. A server without JetStream is not the one that tests need.
fn greet(url: &Url<'_>) -> io::Result<Welcome> {
    let mut wire = Wire::connect(url, PORT)?;
    let info = line(&mut wire)?;
    if !info.starts_with(b"INFO ") {
        return Err(foreign());
    }
    wire.send(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n")?;
    match line(&mut wire)?.as_slice() {
        b"PONG\r\n" => {}
        b"-ERR 'Authorization Violation'\r\n" => return Ok(Welcome::AsksPassword),
        [b'-', error @ ..] => return Err(refused(error)),
        _ => return Err(foreign()),
    }
    let has_streams = String::from_utf8_lossy(&info).contains("\"jetstream\":true");
    match has_streams {
        true => Ok(Welcome::LetIn),
        false => Err(refused(b"JetStream is off there: start it with `-js`")),
    }
}

fn line(wire: &mut Wire) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") && line.len() < LONGEST {
        line.extend(wire.read::<1>()?);
    }
    Ok(line)
}
