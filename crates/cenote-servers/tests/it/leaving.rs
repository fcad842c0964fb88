//! A private server is stopped, however its owner ends.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cenote_servers::{postgres, redis};

use super::{Traces, eventually};

/// A program that runs a private server. It has a process group of its own, as a shell would give
/// it.
struct Holder {
    child: Child,
    addr: SocketAddr,
    folder: PathBuf,
}

impl Holder {
    fn of(kind: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cenote-servers"))
            .arg(kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the program was built for this test");
        let said = child.stdout.take().expect("its output is piped");
        let line = BufReader::new(said).lines().next();
        let line = line.expect("it says a line").expect("it is text");
        let (url, folder) = line.split_once(' ').expect("a URL and a folder");
        let addr = url.split(['/', '@']).find_map(|part| part.parse().ok());
        let holder = Self {
            child,
            addr: addr.expect("the URL has an address"),
            folder: PathBuf::from(folder),
        };
        assert!(TcpStream::connect(holder.addr).is_ok());
        holder
    }

    /// Sends a signal to the whole group, as a keyboard does.
    fn signal(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        let kill = ["-c", "kill -s \"$0\" -- \"$1\"", name, &group];
        let sent = Command::new("sh").args(kill).status();
        assert!(sent.expect("a shell").success());
    }

    fn assert_leaves_nothing(mut self) {
        self.child.wait().expect("it ends");
        eventually("its server is gone", || {
            TcpStream::connect(self.addr).is_err() && !self.folder.exists()
        });
    }
}

#[test]
fn an_interrupt_of_its_owner_stops_a_server() {
    for kind in ["postgres", "redis"] {
        let holder = Holder::of(kind);

        holder.signal("INT");

        holder.assert_leaves_nothing();
    }
}

#[test]
fn a_kill_of_its_owner_stops_a_server() {
    for kind in ["postgres", "mariadb"] {
        let holder = Holder::of(kind);

        holder.signal("KILL");

        holder.assert_leaves_nothing();
    }
}

#[test]
fn an_owner_that_ends_well_stops_its_server() {
    let mut holder = Holder::of("redis");

    drop(holder.child.stdin.take());

    holder.assert_leaves_nothing();
}

#[test]
fn a_panic_of_its_owner_stops_a_server() {
    let server = redis::start().unwrap();
    let traces = Traces::of(&server);

    let panicked = panic::catch_unwind(panic::AssertUnwindSafe(move || {
        let _server = server;
        panic!("as in a test that fails");
    }));

    assert!(panicked.is_err());
    traces.assert_gone();
}

#[test]
fn a_killed_postgres_leaves_no_shared_memory() {
    let mut server = postgres::start().unwrap();
    server.kill().unwrap();
    let lock = std::fs::read_to_string(server.folder().join("data/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().nth(1);
    let segment = segment.unwrap().to_owned();
    assert!(segments().contains(&segment), "{lock}");

    drop(server);

    assert!(!segments().contains(&segment));
}

/// Returns the numbers of all segments of shared memory.
fn segments() -> Vec<String> {
    let listing = std::fs::read_to_string("/proc/sysvipc/shm").expect("the system tells");
    let rows = listing.lines().skip(1);
    rows.filter_map(|row| row.split_whitespace().nth(1))
        .map(str::to_owned)
        .collect()
}
