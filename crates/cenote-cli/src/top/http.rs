//! A small client for HTTP: one request, one connection.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::failure::{Failure, usage};

/// A page on the same network answers in milliseconds.
const LIMIT: Duration = Duration::from_secs(5);

/// No response of the live page is longer.
const LONGEST: u64 = 16 << 20;

/// No head of a response is longer.
const LONGEST_HEAD: usize = 16 << 10;

/// The place where a live page is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    host: String,
    /// Begins and ends with a slash.
    folder: String,
}

impl Site {
    /// Reads an address. The page itself (`…/live`) stands for its folder.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(usage(format!(
                "`{url}` must begin with `http://`: name the address of the live page, and use a \
                 tunnel where it has TLS"
            )));
        };
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(usage(format!("`{url}` has no host")));
        }
        let path = path.trim_end_matches('/');
        let path = path
            .strip_suffix("live")
            .unwrap_or(path)
            .trim_end_matches('/');
        Ok(Self {
            host: host.to_owned(),
            folder: match path {
                "" => "/".to_owned(),
                path => format!("/{path}/"),
            },
        })
    }

    pub(crate) fn shown(&self) -> String {
        format!("http://{}{}", self.host, self.folder)
    }

    /// Reads the JSON at a path below the page.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self.within_limit(self.ask(path)).await?;
        let foreign = || self.foreign();
        let (head, body) = response.split_once("\r\n\r\n").ok_or_else(foreign)?;
        if head.split_whitespace().nth(1) != Some("200") {
            let status = head.lines().next().unwrap_or_default();
            return Err(format!("{} (it said `{status}`)", foreign()).into());
        }
        Ok(serde_json::from_str(body).map_err(|_| foreign())?)
    }

    /// Asks for a path below the page. Returns the head of the response, and the connection with
    /// the body.
    pub(crate) async fn stream(&self, path: &str) -> Result<(String, TcpStream), Failure> {
        let asked = self.within_limit(async {
            let mut stream = self.send(path).await?;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
                // The bytes after the head belong to the body.
                head.push(stream.read_u8().await?);
            }
            Ok((String::from_utf8_lossy(&head).into_owned(), stream))
        });
        asked.await
    }

    /// Returns what to say about a server that is something else.
    pub(crate) fn foreign(&self) -> String {
        let shown = self.shown();
        format!("what answers at {shown} is no live page of cenote: check the path")
    }

    async fn within_limit<T>(
        &self,
        asked: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Failure> {
        let shown = self.shown();
        let asked = timeout(LIMIT, asked).await;
        match asked.map_err(|_| io::Error::from(io::ErrorKind::TimedOut)) {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) | Err(error) => Err(format!(
                "no answer from {shown}: {error}; check that the service runs, and its address"
            )
            .into()),
        }
    }

    async fn ask(&self, path: &str) -> io::Result<String> {
        let stream = self.send(path).await?;
        let mut bytes = Vec::new();
        stream.take(LONGEST).read_to_end(&mut bytes).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// HTTP 1.0 has no chunks: the body ends with the connection.
    async fn send(&self, path: &str) -> io::Result<TcpStream> {
        let Self { host, folder } = self;
        let place = match host.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => host.clone(),
            _ => format!("{host}:80"),
        };
        let mut stream = TcpStream::connect(place).await?;
        let request = format!("GET {folder}{path} HTTP/1.0\r\nhost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests;
