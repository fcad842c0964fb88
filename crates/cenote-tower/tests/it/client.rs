//! A real server, and real clients that can disconnect.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Serves `app` on a free port until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

pub(crate) async fn serve(app: Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Server { address, task }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Server {
    /// Sends one request on a new connection.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.unwrap()
    }

    /// Sends one request, and fails if the connection is cut before the end of the response.
    pub(crate) async fn try_get(&self, path: &str) -> Result<Answer, String> {
        get_on(self.connect().await, path).await
    }

    /// Returns the response before its body is read. Dropping it disconnects the client.
    pub(crate) async fn open(&self, path: &str) -> Result<Response<Incoming>, String> {
        open_on(self.connect().await, path).await
    }

    /// Sends a request without waiting for the response. Dropping it disconnects the client.
    pub(crate) async fn send(&self, path: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        let connected = TcpStream::connect(self.address).await;
        connected.expect("the process must be allowed to open thousands of files: see `ulimit -n`")
    }
}

/// Sends one request on this connection.
pub(crate) async fn get_on(stream: TcpStream, path: &str) -> Result<Answer, String> {
    let (parts, body) = open_on(stream, path).await?.into_parts();
    let body = body.collect().await.map_err(|error| error.to_string())?;
    Ok(Answer {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8(body.to_bytes().to_vec()).unwrap(),
    })
}

async fn open_on(stream: TcpStream, path: &str) -> Result<Response<Incoming>, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let sent = sender.send_request(request).await;
    sent.map_err(|error| error.to_string())
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
