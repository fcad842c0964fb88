//! Doors that stay shut: wrong passwords, and hosts that do not answer. Every command says so in
//! one line.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use cenote_servers::{mariadb, postgres, redis};

use super::admin;
use crate::{cenote, refused};

/// Returns the commands that need a server.
fn commands(url: &str) -> [Vec<&str>; 4] {
    [
        vec!["doctor", url],
        vec!["bench", url],
        vec!["tune", url],
        vec!["demo", "--url", url],
    ]
}

/// The right password opens the door, and a wrong one is refused by every command.
#[track_caller]
fn only_the_right_password_opens(right: &str) {
    let opened = cenote(&["doctor", right]);
    assert!(opened.stderr.is_empty(), "{opened:?}");
    let wrong = right.replacen(":right@", ":wrong@", 1);
    assert_ne!(wrong, right);

    for command in commands(&wrong) {
        refused(&command, 1, &[":***@", "check user, password and database"]);
    }
}

#[test]
fn a_wrong_password_for_postgresql_is_one_line_with_the_fix() {
    let mut server = postgres::start().unwrap();
    let role = "create role app login password 'right'";
    admin::postgres(server.url(), role);
    let rules = server.folder().join("data/pg_hba.conf");
    std::fs::write(rules, "host all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    server.restart().unwrap();

    let url = server.url().replacen("postgres@", "app:right@", 1);
    only_the_right_password_opens(&url);
}

#[test]
fn a_wrong_password_for_mariadb_is_one_line_with_the_fix() {
    let server = mariadb::start().unwrap();
    let user = "CREATE USER app@'127.0.0.1' IDENTIFIED BY 'right'";
    admin::mysql(server.url(), user);

    let url = server.url().replacen("root@", "app:right@", 1);
    only_the_right_password_opens(&url);
}

#[test]
fn a_wrong_password_for_redis_is_one_line_with_the_fix() {
    let server = redis::start_with(&[("requirepass", "right")]).unwrap();

    let url = server.url().replacen("redis://", "redis://:right@", 1);
    only_the_right_password_opens(&url);
}

/// All wait at the same time, because each waits for the whole limit.
#[track_caller]
fn no_answer_from(address: SocketAddr) {
    let urls = ["postgres", "mysql", "redis"].map(|scheme| format!("{scheme}://app:x@{address}"));
    let waiting = urls.map(|url| {
        thread::spawn(move || {
            let fix = "check host and port in the URL, and firewalls";
            refused(&["doctor", &url], 1, &["app:***@", "no answer within", fix]);
        })
    });
    for waiting in waiting {
        waiting.join().unwrap();
    }
}

#[test]
fn a_host_that_accepts_and_says_nothing_is_one_line_with_the_fix() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();

    no_answer_from(silent.local_addr().unwrap());
}

/// The system accepts connections until the queue of the listener is full, and then swallows all
/// packets of others.
#[test]
fn a_host_that_swallows_packets_is_one_line_with_the_fix() {
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = full.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(client) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
        queue.push(client);
    }

    no_answer_from(address);
}
