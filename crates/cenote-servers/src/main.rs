//! Runs a private server, or the servers that `cargo xtask test` would use, until its standard
//! input ends or it is interrupted.

use std::io;
use std::process::ExitCode;

use cenote_servers::{
    Found, Server, find_all, mariadb, nats, pgbouncer, postgres, rabbitmq, redis,
};

const USAGE: &str = "\
usage: cenote-servers find [postgres]         prints the servers that the tests use, or only that
                                              one: a line each, and then an empty line
       cenote-servers postgres | mariadb | redis | nats | rabbitmq
       cenote-servers pgbouncer POSTGRES_URL  runs a private server; prints its URL and folder
Private servers run until standard input ends.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["find"] => find_all().and_then(keep),
        ["find", "postgres"] => postgres::find().and_then(|found| keep(vec![found])),
        ["postgres"] => postgres::start().and_then(hold),
        ["mariadb"] => mariadb::start().and_then(hold),
        ["redis"] => redis::start().and_then(hold),
        ["nats"] => nats::start().and_then(hold),
        ["rabbitmq"] => rabbitmq::start().and_then(hold),
        ["pgbouncer", postgres_url] => pgbouncer::start(postgres_url).and_then(hold),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cenote-servers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn keep(servers: Vec<Found>) -> io::Result<()> {
    for server in &servers {
        println!("{}={} # {server}", server.variable(), server.url());
    }
    println!();
    wait()
}

fn hold(server: Server) -> io::Result<()> {
    println!("{} {}", server.url(), server.folder().display());
    wait()
}

fn wait() -> io::Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}
