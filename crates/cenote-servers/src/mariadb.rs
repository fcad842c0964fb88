//! MariaDB (MySQL speaks the same protocol): find one, or start a private one.

use std::io;

use crate::home::Home;
use crate::program::obtain;
use crate::search::{Found, Kind};
use crate::server::{Recipe, Server};
use crate::url::Url;
use crate::wire::{Welcome, Wire, foreign, refused};
use crate::{Setting, template};

pub(crate) const KIND: Kind = Kind {
    name: "MariaDB",
    variable: "CENOTE_MYSQL_URL",
    standard: "mysql://root@127.0.0.1:3306",
    greet,
    start,
};

const PORT: u16 = 3306;

/// Returns a server to test against, with user `root`, no password and no database chosen: the one
/// that the environment names, the one on the standard port, or a private one.
pub fn find() -> io::Result<Found> {
    Found::search(&KIND)
}

/// Starts a private server with user `root`, no password and no database chosen. A commit survives
/// a kill of the server, but not a crash of the machine.
pub fn start() -> io::Result<Server> {
    start_with(&[])
}

/// Starts a private server with these settings, such as `("max_connections", "5")`.
pub fn start_with(settings: &[Setting<'_>]) -> io::Result<Server> {
    let program = obtain("mariadbd", "mariadb-server", KIND.variable)?;
    let installer = obtain("mariadb-install-db", "mariadb-server", KIND.variable)?;
    let home = Home::new("mysql")?;
    let install = "--no-defaults --datadir=./data --auth-root-authentication-method=normal \
                   --skip-test-db --innodb-log-file-size=16M";
    let install: Vec<&str> = install.split(' ').collect();
    template::fill(&home, &installer, &install)?;

    let args = |home: &Home, port: u16| {
        let data = home.join("data").to_string_lossy().into_owned();
        let port = port.to_string();
        let own = [
            ("datadir", data.as_str()),
            // A server that starts deletes all temporary tables here, also those of other servers.
            ("tmpdir", data.as_str()),
            ("port", port.as_str()),
            ("bind-address", "127.0.0.1"),
            // Relative to the data folder, because a path in a temporary folder may be too long for
            // a socket.
            ("socket", "socket"),
            ("skip-name-resolve", "1"),
            ("innodb-log-file-size", "16M"),
            ("innodb-buffer-pool-size", "64M"),
            // Each commit goes to the system, which need not write it to the disk.
            ("innodb-flush-log-at-trx-commit", "2"),
            // For a quick stop. The next start does the work that is left.
            ("innodb-fast-shutdown", "2"),
        ];
        let mut args = vec!["--no-defaults".to_owned()];
        let all = own.iter().chain(settings);
        args.extend(all.map(|(name, value)| format!("--{name}={value}")));
        Ok(args)
    };
    let recipe = Recipe {
        program,
        args: &args,
        ready: "ready for connections",
        stop: "TERM",
        url: ("mysql://root@", ""),
        clean_up: |_| {},
    };
    Server::start(home, recipe)
}

/// The client's capabilities: long passwords, protocol 4.1, its authentication, and plugins for it.
const ABILITIES: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000;

/// Starts a session without a password and ends it, as a client does.
fn greet(url: &Url<'_>) -> io::Result<Welcome> {
    let mut wire = Wire::connect(url, PORT)?;
    let (_, hello) = read(&mut wire)?;
    match hello.as_slice() {
        [10, ..] => {}
        [0xff, error @ ..] => return Err(refused(text(error))),
        _ => return Err(foreign()),
    }
    let mut login = ABILITIES.to_le_bytes().to_vec();
    login.extend([0, 0, 0, 1]); // the longest packet
    login.push(45); // utf8mb4
    login.extend([0; 23]);
    login.extend_from_slice(url.user.unwrap_or("root").as_bytes());
    login.extend([0, 0]); // end of the name, an empty password
    login.extend_from_slice(b"mysql_native_password\0");
    send(&mut wire, 1, &login)?;

    let (number, mut answer) = read(&mut wire)?;
    if answer.first() == Some(&0xfe) {
        // The server asks for another way to log in. An empty password is empty there too.
        send(&mut wire, number.wrapping_add(1), &[])?;
        (_, answer) = read(&mut wire)?;
    }
    match answer.as_slice() {
        [0, ..] => {}
        // 1045 is "access denied". The tests have the password.
        [0xff, 0x15, 0x04, ..] if url.password.is_some() => return Ok(Welcome::AsksPassword),
        [0xff, error @ ..] => return Err(refused(text(error))),
        _ => return Err(foreign()),
    }
    send(&mut wire, 0, &[1])?; // the command to quit
    Ok(Welcome::LetIn)
}

fn read(wire: &mut Wire) -> io::Result<(u8, Vec<u8>)> {
    let [low, middle, high, number] = wire.read::<4>()?;
    let length = u32::from_le_bytes([low, middle, high, 0]);
    Ok((number, wire.read_message(length as usize)?))
}

fn send(wire: &mut Wire, number: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(|_| foreign())?;
    let [low, middle, high, _] = length.to_le_bytes();
    wire.send(&[&[low, middle, high, number], body].concat())
}

/// Returns the text of an error, without its number and its state (`#` and five letters).
fn text(error: &[u8]) -> &[u8] {
    match error.get(2..).unwrap_or_default() {
        [b'#', _, _, _, _, _, text @ ..] => text,
        text => text,
    }
}
