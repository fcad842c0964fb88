//! RabbitMQ: find one, or start a private one.
//!
//! Erlang programs of one machine find each other by a small daemon, `epmd`. A private server uses
//! the one that runs. If there is none, Erlang starts one on loopback, and it stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::home::{Home, random};
use crate::program::obtain;
use crate::search::{Found, Kind};
use crate::server::{Recipe, Server, free_port};
use crate::url::Url;
use crate::wire::{Welcome, Wire, foreign, refused};

pub(crate) const KIND: Kind = Kind {
    name: "RabbitMQ",
    variable: "CENOTE_RABBITMQ_URL",
    standard: "amqp://guest:guest@127.0.0.1:5672",
    greet,
    start,
};

const PORT: u16 = 5672;

/// Debian's program in the path writes its log elsewhere and refuses other users. It calls this
/// one.
const DEBIAN: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// Returns a server to test against, with the user `guest` and its password: the one that the
/// environment names, the one on the standard port, or a private one.
pub fn find() -> io::Result<Found> {
    Found::search(&KIND)
}

/// Starts a private server with the user `guest`, whose password is `guest`. It takes several
/// seconds.
pub fn start() -> io::Result<Server> {
    let installed = obtain("rabbitmq-server", "rabbitmq-server", KIND.variable)?;
    let debian = Path::new(DEBIAN);
    let program = if debian.is_file() {
        debian.to_owned()
    } else {
        installed
    };
    let args = |home: &Home, port: u16| {
        fs::write(home.join("plugins"), "[].")?;
        let mut args = environment(home, port, free_port()?);
        args.push(program.to_string_lossy().into_owned());
        Ok(args)
    };
    let recipe = Recipe {
        // The server takes its settings from the environment. This program becomes the server.
        program: PathBuf::from("/usr/bin/env"),
        args: &args,
        ready: "Server startup complete",
        stop: "TERM",
        url: ("amqp://guest:guest@", ""),
        clean_up: |_| {},
    };
    Server::start(Home::new("rabbitmq")?, recipe)
}

/// Returns the settings of a server that keeps everything in its home and listens on loopback only.
fn environment(home: &Home, port: u16, distribution: u16) -> Vec<String> {
    let path = |name: &str| home.join(name).to_string_lossy().into_owned();
    let settings = [
        // The script then becomes the server, and does not stay as its parent.
        ("RABBITMQ_ALLOW_INPUT", "1".to_owned()),
        (
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-noinput -kernel inet_dist_use_interface {127,0,0,1}".to_owned(),
        ),
        (
            "RABBITMQ_NODENAME",
            format!("cenote-{:016x}@localhost", random()),
        ),
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
        ("RABBITMQ_NODE_PORT", port.to_string()),
        ("RABBITMQ_DIST_PORT", distribution.to_string()),
        ("RABBITMQ_MNESIA_BASE", path("data")),
        ("RABBITMQ_PID_FILE", path("pid")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins")),
        ("RABBITMQ_CONFIG_FILE", path("rabbitmq")),
        ("RABBITMQ_CONF_ENV_FILE", "/dev/null".to_owned()),
        ("RABBITMQ_LOGS", "-".to_owned()),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
    ];
    let settings = settings.into_iter();
    settings
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

const END: u8 = 0xce;

/// Logs in, as a client does, and leaves.
fn greet(url: &Url<'_>) -> io::Result<Welcome> {
    let mut wire = Wire::connect(url, PORT)?;
    wire.send(b"AMQP\0\0\x09\x01")?;
    let hello = read(&mut wire)?;
    if !hello.starts_with(&[0, 10, 0, 10]) {
        return Err(foreign());
    }
    let (user, password) = (url.user.unwrap_or("guest"), url.password.unwrap_or("guest"));
    let login = format!("\0{user}\0{password}");
    let length = u32::try_from(login.len()).map_err(|_| foreign())?;
    let mut answer = vec![0, 10, 0, 11]; // the method `start-ok` of a connection
    answer.extend([0; 4]); // no properties
    answer.extend_from_slice(b"\x05PLAIN");
    answer.extend(length.to_be_bytes());
    answer.extend_from_slice(login.as_bytes());
    answer.extend_from_slice(b"\x05en_US");
    send(&mut wire, &answer)?;

    match read(&mut wire) {
        Ok(next) if next.starts_with(&[0, 10, 0, 30]) => Ok(Welcome::LetIn),
        Ok(_) => Err(foreign()),
        // A server that refuses a login closes without a word.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(refused(b"it refuses this user and password"))
        }
        Err(error) => Err(error),
    }
}

/// Reads a method of the connection.
fn read(wire: &mut Wire) -> io::Result<Vec<u8>> {
    let [kind, channel_high, channel_low, length @ ..] = wire.read::<7>()?;
    if (kind, channel_high, channel_low) != (1, 0, 0) {
        return Err(foreign());
    }
    let body = wire.read_message(u32::from_be_bytes(length) as usize)?;
    let [end] = wire.read::<1>()?;
    if end == END { Ok(body) } else { Err(foreign()) }
}

fn send(wire: &mut Wire, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(|_| foreign())?;
    let frame = [&[1, 0, 0], &length.to_be_bytes()[..], body, &[END]].concat();
    wire.send(&frame)
}
