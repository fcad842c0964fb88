//! The promises of the servers, seen through their own client programs and by what they leave
//! behind.

mod browser;
mod clients;
mod finding;
mod leaving;
mod lives;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use cenote_servers::Server;

/// What must be gone after a server is gone.
struct Traces {
    pid: u32,
    addr: std::net::SocketAddr,
    folder: std::path::PathBuf,
}

impl Traces {
    fn of(server: &Server) -> Self {
        let traces = Self {
            pid: server.pid().expect("it runs"),
            addr: server.addr(),
            folder: server.folder().to_owned(),
        };
        assert!(Path::new("/proc").join(traces.pid.to_string()).exists());
        assert!(TcpStream::connect(traces.addr).is_ok());
        assert!(traces.folder.exists());
        traces
    }

    #[track_caller]
    fn assert_gone(&self) {
        assert!(!Path::new("/proc").join(self.pid.to_string()).exists());
        assert!(TcpListener::bind(self.addr).is_ok(), "the port is free");
        assert!(!self.folder.exists(), "{}", self.folder.display());
    }
}

/// Waits for the effect of other processes.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("never: {what}");
}
