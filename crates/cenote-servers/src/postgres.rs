//! PostgreSQL: find one, or start a private one.

use std::fs;
use std::io;
use std::path::Path;

use crate::home::Home;
use crate::program::obtain;
use crate::search::{Found, Kind};
use crate::server::{Recipe, Server};
use crate::url::Url;
use crate::wire::{Welcome, Wire, foreign, refused};
use crate::{Setting, template};

pub(crate) const KIND: Kind = Kind {
    name: "PostgreSQL",
    variable: "CENOTE_POSTGRES_URL",
    standard: "postgres://postgres@127.0.0.1:5432/postgres",
    greet,
    start,
};

const PORT: u16 = 5432;

/// Returns a server to test against, with a superuser, no password and the database `postgres`: the
/// one that the environment names, the one on the standard port, or a private one.
pub fn find() -> io::Result<Found> {
    Found::search(&KIND)
}

/// Starts a private server with user `postgres`, database `postgres` and no password. A commit
/// survives a kill of the server, but not a crash of the machine.
pub fn start() -> io::Result<Server> {
    start_with(&[])
}

/// Starts a private server with these settings, such as `("max_connections", "5")`.
pub fn start_with(settings: &[Setting<'_>]) -> io::Result<Server> {
    let program = obtain("postgres", "postgresql", KIND.variable)?;
    let home = Home::new("postgres")?;
    let initdb = "-D data -U postgres -A trust -E UTF8 --no-locale --no-sync";
    let initdb: Vec<&str> = initdb.split(' ').collect();
    template::fill(&home, &program.with_file_name("initdb"), &initdb)?;

    let args = |_: &Home, port: u16| {
        let mut args = vec!["-D".to_owned(), "data".to_owned()];
        let port = port.to_string();
        let own = [
            ("port", port.as_str()),
            ("listen_addresses", "127.0.0.1"),
            // A path in a temporary folder may be too long for a socket.
            ("unix_socket_directories", ""),
            ("fsync", "off"),
        ];
        for (name, value) in own.iter().chain(settings) {
            args.push("-c".to_owned());
            args.push(format!("{name}={value}"));
        }
        Ok(args)
    };
    let recipe = Recipe {
        program,
        args: &args,
        ready: "ready to accept connections",
        stop: "INT",
        url: ("postgres://postgres@", "/postgres"),
        clean_up: remove_segment,
    };
    Server::start(home, recipe)
}

/// A killed server leaves a segment of shared memory behind. Its lock file names the segment; a
/// server that stops in good order removes both.
fn remove_segment(home: &Home) {
    let lock = fs::read_to_string(home.join("data/postmaster.pid")).unwrap_or_default();
    if let Some(segment) = lock
        .lines()
        .nth(6)
        .and_then(|line| line.split_whitespace().nth(1))
    {
        // At worst a few bytes stay until the next boot.
        let _ = home.run(Path::new("ipcrm"), &["-m", segment]);
    }
}

/// Starts a session and ends it, as a client does.
pub(crate) fn greet(url: &Url<'_>) -> io::Result<Welcome> {
    let mut wire = Wire::connect(url, PORT)?;
    let user = url.user.unwrap_or("postgres");
    let database = if url.path.is_empty() { user } else { url.path };
    let mut hello = vec![0, 0, 0, 0, 0, 3, 0, 0]; // its length, protocol 3.0
    for word in ["user", user, "database", database, ""] {
        hello.extend_from_slice(word.as_bytes());
        hello.push(0);
    }
    let length = u32::try_from(hello.len()).map_err(|_| foreign())?;
    hello[..4].copy_from_slice(&length.to_be_bytes());
    wire.send(&hello)?;

    loop {
        let (kind, message) = read(&mut wire)?;
        match (kind, message.as_slice()) {
            (b'R', [0, 0, 0, 0, ..]) => {}
            (b'R', _) => return Ok(Welcome::AsksPassword),
            // Parameters, the key to cancel with, and notices.
            (b'S' | b'K' | b'N', _) => {}
            (b'Z', _) => break,
            (b'E', fields) => return Err(refused(text(fields))),
            _ => return Err(foreign()),
        }
    }
    wire.send(&[b'X', 0, 0, 0, 4])?;
    Ok(Welcome::LetIn)
}

fn read(wire: &mut Wire) -> io::Result<(u8, Vec<u8>)> {
    let [kind, length @ ..] = wire.read::<5>()?;
    let length = u32::from_be_bytes(length)
        .checked_sub(4)
        .ok_or_else(foreign)?;
    Ok((kind, wire.read_message(length as usize)?))
}

/// Returns the field `M` of an error, which is its text for people.
fn text(fields: &[u8]) -> &[u8] {
    let mut fields = fields.split(|&byte| byte == 0);
    let text = fields.find_map(|field| field.strip_prefix(b"M"));
    text.unwrap_or(b"an error without words")
}
