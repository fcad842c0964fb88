//! The first messages with simulated servers: one of another kind, one that says nothing, and one
//! that asks for a password.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::Welcome;
use crate::search::Kind;
use crate::url::Url;
use crate::{mariadb, postgres, redis};

const KINDS: [Kind; 3] = [postgres::KIND, mariadb::KIND, redis::KIND];

/// Greets a server that does this to its one client.
fn greet(kind: &Kind, serve: impl FnOnce(TcpStream) + Send + 'static) -> std::io::Result<Welcome> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("x://me:secret@{}/db", listener.local_addr()?);
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client comes");
        serve(stream);
    });
    let welcome = (kind.greet)(&Url::parse(&url)?);
    server.join().expect("the server is played to its end");
    welcome
}

/// Sends these bytes and reads until the client is done.
fn say(words: &'static [u8]) -> impl FnOnce(TcpStream) + Send {
    move |mut stream| {
        stream.write_all(words).expect("the client listens");
        // The client may go without a word.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

#[test]
fn another_kind_of_server_is_told_apart() {
    for kind in KINDS {
        let error = greet(&kind, say(b"HTTP/1.1 400 Bad Request\r\n\r\n")).unwrap_err();

        assert_eq!(error.kind(), ErrorKind::InvalidData, "{}", kind.name);
    }
}

#[test]
fn a_server_that_hangs_up_is_an_error() {
    for kind in KINDS {
        assert!(greet(&kind, drop).is_err(), "{}", kind.name);
    }
}

#[test]
fn a_server_that_asks_for_a_password_is_there() {
    let postgres = say(b"R\0\0\0\x08\0\0\0\x03");
    // Messages are read one after the other, so both can be sent at once.
    let mariadb = say(b"\x02\0\0\0\x0ax\x09\0\0\x02\xff\x15\x04#28000");
    let redis = say(b"-NOAUTH Authentication required.\r\n");

    assert_eq!(
        greet(&postgres::KIND, postgres).unwrap(),
        Welcome::AsksPassword
    );
    assert_eq!(
        greet(&mariadb::KIND, mariadb).unwrap(),
        Welcome::AsksPassword
    );
    assert_eq!(greet(&redis::KIND, redis).unwrap(), Welcome::AsksPassword);
}

#[test]
fn a_refusal_is_told_in_the_servers_own_words() {
    let postgres = say(b"E\0\0\0\x15SFATAL\0Mno such\0\0");
    let mariadb = say(b"\x0b\0\0\0\xff\x10\x04too many");
    let redis = say(b"-ERR max number of clients reached\r\n");

    for (kind, serve, words) in [
        (
            postgres::KIND,
            Box::new(postgres) as Box<dyn FnOnce(TcpStream) + Send>,
            "no such",
        ),
        (mariadb::KIND, Box::new(mariadb), "too many"),
        (
            redis::KIND,
            Box::new(redis),
            "ERR max number of clients reached",
        ),
    ] {
        assert_eq!(greet(&kind, serve).unwrap_err().to_string(), words);
    }
}
