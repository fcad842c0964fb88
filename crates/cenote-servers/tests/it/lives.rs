//! The life of a private server: it is started, used, stopped, killed and started again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;

use cenote_servers::{mariadb, nats, pgbouncer, postgres, rabbitmq, redis};

use super::clients::{self, Client, MARIADB, POSTGRES, REDIS, psql};
use super::{Traces, eventually};

fn answers_and_leaves_nothing_behind(client: &Client) {
    let server = (client.start)().expect("it starts");
    let traces = Traces::of(&server);
    assert_eq!((client.write)(&server).expect("it takes it"), "ok");

    drop(server);

    traces.assert_gone();
}

#[test]
fn a_postgres_answers_and_leaves_nothing_behind() {
    answers_and_leaves_nothing_behind(&POSTGRES);
}

#[test]
fn a_mariadb_answers_and_leaves_nothing_behind() {
    answers_and_leaves_nothing_behind(&MARIADB);
}

#[test]
fn a_redis_answers_and_leaves_nothing_behind() {
    answers_and_leaves_nothing_behind(&REDIS);
}

fn keeps_data_and_port_over_kill_and_stop(client: &Client) {
    let mut server = (client.start)().expect("it starts");
    let (addr, first) = (server.addr(), server.pid());
    (client.write)(&server).expect("it takes it");

    server.kill().expect("it is killed");
    assert_eq!(server.pid(), None);
    assert!(TcpStream::connect(addr).is_err(), "it does not answer");
    server.restart().expect("it starts again");

    assert_eq!((client.read)(&server), Ok("this".to_owned()));
    assert_ne!(server.pid(), first);

    server.stop().expect("it stops");
    server.stop().expect("it stops");
    assert!(TcpStream::connect(addr).is_err(), "it does not answer");
    server.restart().expect("it starts again");
    server.restart().expect("it starts again");

    assert_eq!((client.read)(&server), Ok("this".to_owned()));
    assert_eq!(server.addr(), addr);
    let traces = Traces::of(&server);
    server.kill().expect("it is killed");
    drop(server);
    traces.assert_gone();
}

#[test]
fn a_postgres_keeps_data_and_port_over_kill_and_stop() {
    keeps_data_and_port_over_kill_and_stop(&POSTGRES);
}

#[test]
fn a_mariadb_keeps_data_and_port_over_kill_and_stop() {
    keeps_data_and_port_over_kill_and_stop(&MARIADB);
}

#[test]
fn a_redis_keeps_data_and_port_over_kill_and_stop() {
    keeps_data_and_port_over_kill_and_stop(&REDIS);
}

#[test]
fn a_kill_takes_a_busy_session_along() {
    let mut server = postgres::start().unwrap();
    let mut session = Command::new("psql")
        .args(["-Xqc", "select sum(i) from generate_series(1, 1e12) i"])
        .arg(server.url())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let busy =
        "select count(*) from pg_stat_activity where query like '%1e12%' and state = 'active'";
    eventually("it is busy", || {
        // The session that counts is active too.
        psql(server.url(), busy) == Ok("2".to_owned())
    });

    server.kill().unwrap();

    eventually("its client knows", || {
        matches!(session.try_wait(), Ok(Some(_)))
    });
    server.restart().unwrap();
}

fn two_at_once_do_not_clash(client: &'static Client) {
    let [first, second] = [(), ()].map(|()| thread::spawn(client.start));
    let first = first.join().expect("no panic").expect("it starts");
    let second = second.join().expect("no panic").expect("it starts");

    (client.write)(&first).expect("it takes it");

    assert_ne!(first.addr(), second.addr());
    assert_eq!((client.read)(&first), Ok("this".to_owned()));
    assert_ne!((client.read)(&second), Ok("this".to_owned()));
    let traces = Traces::of(&second);
    drop(second);
    traces.assert_gone();
    assert_eq!((client.read)(&first), Ok("this".to_owned()));
}

#[test]
fn two_postgres_at_once_do_not_clash() {
    two_at_once_do_not_clash(&POSTGRES);
}

#[test]
fn two_mariadb_at_once_do_not_clash() {
    two_at_once_do_not_clash(&MARIADB);
}

#[test]
fn two_redis_at_once_do_not_clash() {
    two_at_once_do_not_clash(&REDIS);
}

#[test]
fn settings_reach_the_server() {
    let postgres = postgres::start_with(&[("max_connections", "7")]).unwrap();
    let mariadb = mariadb::start_with(&[("max_connections", "11")]).unwrap();
    let redis = redis::start_with(&[("maxclients", "5")]).unwrap();

    assert_eq!(psql(postgres.url(), "show max_connections").unwrap(), "7");
    let asked = clients::mariadb(&mariadb, "select @@max_connections");
    assert_eq!(asked.unwrap(), "11");
    let asked = clients::redis(&redis, &["config", "get", "maxclients"]);
    assert_eq!(asked.unwrap(), "maxclients\n5");
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let refused = postgres::start_with(&[("no_such_setting", "1")]);

    let why = refused.unwrap_err().to_string();
    assert!(why.contains("no_such_setting"), "{why}");
}

#[test]
fn a_pgbouncer_answers_over_kill_and_restart_and_leaves_nothing_behind() {
    let postgres = postgres::start().unwrap();
    let mut server = pgbouncer::start(postgres.url()).unwrap();
    let (addr, port) = (server.addr(), postgres.addr().port().to_string());
    let ask = "select current_setting('port')";
    assert_eq!(psql(server.url(), ask).unwrap(), port);

    server.kill().unwrap();
    assert!(psql(server.url(), ask).is_err());
    server.restart().unwrap();

    assert_eq!(server.addr(), addr);
    assert_eq!(psql(server.url(), ask).unwrap(), port);
    let traces = Traces::of(&server);
    drop(server);
    traces.assert_gone();
}

#[test]
fn two_sessions_share_one_connection_through_pgbouncer() {
    let postgres = postgres::start().unwrap();
    let settings = [("default_pool_size", "1"), ("query_wait_timeout", "5")];
    let server = pgbouncer::start_with(postgres.url(), &settings).unwrap();
    let mut first = Command::new("psql")
        .args(["-XAtq", server.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = first.stdin.take().unwrap();
    let mut answers = BufReader::new(first.stdout.take().unwrap()).lines();
    ask.write_all(b"select pg_backend_pid();\n").unwrap();
    let backend = answers.next().unwrap().unwrap();

    // The first session is still open, but its connection is free because no transaction holds it.
    let second = psql(server.url(), "select pg_backend_pid()");

    assert_eq!(second.unwrap(), backend);
    drop(ask);
    first.wait().unwrap();
}

#[test]
fn a_rabbitmq_answers_over_kill_and_restart_and_leaves_nothing_behind() {
    let mut server = rabbitmq::start().unwrap();
    let addr = server.addr();
    let greet = || {
        let mut stream = TcpStream::connect(addr)?;
        stream.write_all(b"AMQP\0\0\x09\x01")?;
        let mut method = [0; 11]; // a frame's head, and the number of its method
        stream.read_exact(&mut method)?;
        std::io::Result::Ok(method[7..].to_vec())
    };
    assert_eq!(greet().unwrap(), [0, 10, 0, 10], "the method `start`");

    server.kill().unwrap();
    assert!(greet().is_err());
    server.restart().unwrap();

    assert_eq!(greet().unwrap(), [0, 10, 0, 10]);
    let traces = Traces::of(&server);
    drop(server);
    traces.assert_gone();
}

#[test]
fn a_nats_answers_over_kill_and_restart_and_leaves_nothing_behind() {
    let mut server = nats::start().unwrap();
    let addr = server.addr();
    let info = || {
        let stream = TcpStream::connect(addr)?;
        BufReader::new(stream)
            .lines()
            .next()
            .expect("it says something")
    };
    assert!(info().unwrap().contains("\"jetstream\":true"));

    server.kill().unwrap();
    assert!(info().is_err());
    server.restart().unwrap();

    assert!(info().unwrap().starts_with("INFO {"));
    let traces = Traces::of(&server);
    drop(server);
    traces.assert_gone();
}
