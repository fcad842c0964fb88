//! A real client, which can disconnect.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Sends requests to one server, each on a new connection.
#[derive(Clone, Copy)]
pub(crate) struct Client(pub(crate) SocketAddr);

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Client {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.unwrap()
    }

    /// Fails if the connection is cut before the end of the response.
    pub(crate) async fn try_get(&self, path: &str) -> Result<Answer, String> {
        let (parts, body) = self.open(path).await?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_bytes().to_vec()).unwrap(),
        })
    }

    /// Returns the response before its body is read. Dropping it disconnects the client.
    pub(crate) async fn open(&self, path: &str) -> Result<Response<Incoming>, String> {
        let stream = TcpStream::connect(self.0).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(path).header("host", "localhost");
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let sent = sender.send_request(request).await;
        sent.map_err(|error| error.to_string())
    }

    /// Sends a request without waiting for the response. Dropping it disconnects the client.
    pub(crate) async fn send(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.0).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

/// Disconnects without a farewell, as a client does whose process is killed with unread data.
pub(crate) fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

/// Waits until `is_so` returns true, for at most half a minute.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}
