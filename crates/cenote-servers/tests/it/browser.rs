//! The promises of the private browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use cenote_servers::chromium;

#[test]
fn a_chromium_takes_commands_and_leaves_nothing_behind() {
    let browser = chromium::start().expect("it starts");
    let pid = browser.pid().expect("it runs").to_string();
    let devtools = browser.devtools();
    let (address, _) = devtools
        .strip_prefix("ws://")
        .and_then(|rest| rest.split_once('/'))
        .unwrap_or_else(|| panic!("`{devtools}` is the address of a WebSocket"));
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(
        stream,
        "GET /json/version HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("it takes a request");
    let mut said = [0; 12];
    stream.read_exact(&mut said).expect("it replies");
    assert_eq!(&said, b"HTTP/1.1 200");
    let folder = browser.folder().to_owned();

    drop(browser);

    assert!(!Path::new("/proc").join(pid).exists());
    assert!(TcpStream::connect(address).is_err());
    assert!(!folder.exists(), "{}", folder.display());
}
