//! `cenote tune` finds the optimum of a server whose optimum is known.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use cenote_servers::redis;
use serde_json::Value;

use crate::{json, text};

/// How long a request is served. It is far longer than what the machine needs for it, so that the
/// optimum does not depend on the machine.
const SERVED: Duration = Duration::from_millis(30);

/// The places in which requests are served. More requests wait.
struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Places {
    fn serve(&self) {
        let free = self.free.lock().unwrap();
        *self.freed.wait_while(free, |free| *free == 0).unwrap() -= 1;
        thread::sleep(SERVED);
        *self.free.lock().unwrap() += 1;
        self.freed.notify_one();
    }
}

/// Starts a proxy in front of a server. It serves `places` requests at once, and returns its URL.
/// Its threads end with the test.
fn proxy(server: SocketAddr, places: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let places = Arc::new(Places {
        free: Mutex::new(places),
        freed: Condvar::new(),
    });
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else {
                return;
            };
            let places = Arc::clone(&places);
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pump(from, to, || places.serve()));
            thread::spawn(move || pump(server, client, || ()));
        }
    });
    url
}

fn pump(mut from: TcpStream, mut to: TcpStream, before: impl Fn()) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        before();
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The other side may be gone already.
    let _ = to.shutdown(Shutdown::Both);
}

/// How often an answer that is not sure is asked for again. A machine under heavy load disturbs the
/// measurement, and `tune` says so.
const TRIES: usize = 4;

/// Finds the optimum, which must be right within a fifth. An answer that is sure must be right at
/// once.
fn find(server: SocketAddr, places: usize) {
    let url = proxy(server, places);
    let mut wrong = Vec::new();
    for _ in 0..TRIES {
        let (code, advice) = json(&["tune", &url, "--step-ms", "700", "--max-size", "40"]);

        assert_eq!(code, Some(0), "{advice}");
        let found = advice["max_size"].as_f64().unwrap();
        if (found / places as f64 - 1.0).abs() <= 0.2 {
            return;
        }
        assert_ne!(advice["sure"], "high", "{found}, not {places}: {advice}");
        wrong.push(advice);
    }
    panic!("never {places}: {wrong:?}");
}

#[test]
fn the_known_optimum_is_found_within_a_fifth() {
    let server = redis::start().unwrap();
    let address = server.addr();
    let tunings = [5, 10, 20].map(|places| thread::spawn(move || find(address, places)));

    for tuning in tunings {
        tuning.join().unwrap();
    }
}

/// An answer of many values is little work for the server, and much for a program with one thread
/// that reads it.
#[test]
fn a_program_that_is_the_limit_says_so() {
    let server = redis::start().unwrap();
    let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
    let mut admin = TcpStream::connect(server.addr()).unwrap();
    writeln!(admin, "RPUSH values {}\r", values.join(" ")).unwrap();
    let mut answer = [0; 7];
    admin.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b":1000\r\n");

    let mut tune = Command::new(env!("CARGO_BIN_EXE_cenote"));
    tune.args(["tune", server.url(), "--max-size", "4", "--step-ms", "300"]);
    tune.args(["--sql", "LRANGE values 0 -1", "--json"]);
    let output = tune.env("TOKIO_WORKER_THREADS", "1").output().unwrap();

    let shown = text(&output.stdout);
    let advice: Value = serde_json::from_str(&shown).unwrap();
    assert!(output.status.success(), "{shown}{}", text(&output.stderr));
    let remark = advice["client_limit"].as_str().expect(&shown);
    assert!(remark.contains("it was the limit"), "{remark}");
    assert_eq!(advice["sure"], "low", "{shown}");
}
