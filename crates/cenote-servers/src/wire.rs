//! The first messages with a server over TCP: connect, send and read, all within a time limit.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::url::Url;

/// A running server answers in milliseconds.
const LIMIT: Duration = Duration::from_secs(3);

/// No first message is longer. A longer one is of another protocol.
const LONGEST: usize = 64 * 1024;

/// How a server receives a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    LetIn,
    AsksPassword,
}

pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) fn connect(url: &Url<'_>, standard_port: u16) -> io::Result<Self> {
        let port = url.port.unwrap_or(standard_port);
        let mut last = io::Error::other("its host has no address");
        for address in (url.host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, LIMIT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(LIMIT))?;
                    stream.set_write_timeout(Some(LIMIT))?;
                    return Ok(Self(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    pub(crate) fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a message whose length the server has sent.
    pub(crate) fn read_message(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > LONGEST {
            return Err(foreign());
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The error for another kind of server.
pub(crate) fn foreign() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "what answers there speaks another protocol",
    )
}

/// An error with the server's own text.
pub(crate) fn refused(said: &[u8]) -> io::Error {
    let said = String::from_utf8_lossy(said).trim().to_owned();
    io::Error::new(io::ErrorKind::PermissionDenied, said)
}

#[cfg(test)]
mod tests;
