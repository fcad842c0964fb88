//! A start whose port is taken by another program at the last moment.

use std::cell::RefCell;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::{Recipe, Server};
use crate::home::Home;
use crate::program::obtain;

#[test]
fn a_port_that_another_program_takes_first_is_left_to_it() {
    let rival = RefCell::new(None);
    let args = |_: &Home, port: u16| {
        let mut rival = rival.borrow_mut();
        if rival.is_none() {
            *rival = Some(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?);
        }
        let line = format!("--bind 127.0.0.1 --port {port}");
        Ok(line.split(' ').map(str::to_owned).collect())
    };
    let recipe = Recipe {
        program: obtain("redis-server", "redis-server", "CENOTE_REDIS_URL").unwrap(),
        args: &args,
        ready: "Ready to accept connections",
        stop: "TERM",
        url: ("redis://", ""),
        clean_up: |_| {},
    };

    let server = Server::start(Home::new("nobody").unwrap(), recipe).unwrap();

    let taken = rival.borrow().as_ref().unwrap().local_addr().unwrap();
    assert_ne!(server.addr(), taken);
    assert!(server.url().ends_with(&server.addr().to_string()));
    TcpStream::connect(server.addr()).unwrap();
}
