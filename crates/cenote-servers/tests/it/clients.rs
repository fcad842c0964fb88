//! The servers' own client programs, which write, read and are refused.

use std::process::Command;

use cenote_servers::Server;

/// The output of a client program, or its error.
type Answer = Result<String, String>;

/// A kind of server, and how to write something to it and to read it back.
pub(crate) struct Client {
    pub(crate) start: fn() -> std::io::Result<Server>,
    pub(crate) write: fn(&Server) -> Answer,
    pub(crate) read: fn(&Server) -> Answer,
}

pub(crate) const POSTGRES: Client = Client {
    start: cenote_servers::postgres::start,
    write: |server| {
        psql(
            server.url(),
            "create table kept as select 'this' as word; select 'ok'",
        )
    },
    read: |server| psql(server.url(), "select word from kept"),
};

pub(crate) const MARIADB: Client = Client {
    start: cenote_servers::mariadb::start,
    write: |server| {
        let table = "create database d; create table d.kept (word text) engine=innodb";
        mariadb(
            server,
            &format!("{table}; insert into d.kept values ('this'); select 'ok'"),
        )
    },
    read: |server| mariadb(server, "select word from d.kept"),
};

pub(crate) const REDIS: Client = Client {
    start: cenote_servers::redis::start,
    write: |server| redis(server, &["set", "kept", "this"]).map(|said| said.to_lowercase()),
    read: |server| redis(server, &["get", "kept"]),
};

pub(crate) fn psql(url: &str, sql: &str) -> Answer {
    run(Command::new("psql").args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, url]))
}

pub(crate) fn mariadb(server: &Server, sql: &str) -> Answer {
    let port = server.addr().port().to_string();
    let login = ["--no-defaults", "-h127.0.0.1", "-uroot", "-P", &port];
    run(Command::new("mariadb").args(login).args(["-Ne", sql]))
}

pub(crate) fn redis(server: &Server, words: &[&str]) -> Answer {
    let port = server.addr().port().to_string();
    run(Command::new("redis-cli").args(["-p", &port]).args(words))
}

fn run(command: &mut Command) -> Answer {
    let output = command.output().expect("the client came with the server");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}
