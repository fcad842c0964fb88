//! What the tests share: pools, requests without a server, and a server on a real port.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::request::Builder;
use axum::http::{HeaderMap, Request, StatusCode};
use cenote::{Closures, Pool};
use cenote_dashboard::Dashboard;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::ServiceExt;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(crate) type AnyPool = Pool<Closures<()>>;

pub(crate) fn pool(name: &str, max_size: usize) -> AnyPool {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()));
    pool.name(name).max_size(max_size).build().unwrap()
}

/// A response that was read to its end.
pub(crate) struct Read {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Read {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub(crate) async fn send(app: &Router, request: Builder, body: &str) -> Read {
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Read {
        status: parts.status,
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

pub(crate) async fn get(app: &Router, path: &str) -> Read {
    send(app, Request::get(path), "").await
}

/// Returns the entry of a pool in the list of all pools.
pub(crate) async fn entry(app: &Router, pool: &AnyPool) -> Value {
    let all = get(app, "/api/pools").await.json();
    let mut pools = all["pools"].as_array().unwrap().iter();
    let entry = pools.find(|one| one["number"] == pool.number());
    entry.unwrap_or(&Value::Null).clone()
}

/// The events of a stream, one after the other.
pub(crate) struct Events {
    body: Body,
    rest: String,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) async fn of(app: &Router, path: &str) -> Self {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body(),
            rest: String::new(),
        }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        while !self.rest.contains("\n\n") {
            let frame = self.body.frame().await?.unwrap();
            let bytes = frame.into_data().unwrap();
            self.rest.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        let (text, rest) = self.rest.split_once("\n\n").unwrap();
        let mut lines = text.lines();
        let mut field = |name: &str| {
            let line = lines.next().unwrap();
            line.strip_prefix(name).unwrap().to_owned()
        };
        let event = Event {
            id: field("id: ").parse().unwrap(),
            name: field("event: "),
            data: serde_json::from_str(&field("data: ")).unwrap(),
        };
        self.rest = rest.to_owned();
        Some(event)
    }
}

/// A server on a real port, with a runtime of its own, so that its end closes all connections.
pub(crate) struct Server {
    runtime: Option<Runtime>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Serves the page below `/pools`.
    pub(crate) fn start(dashboard: Dashboard) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), dashboard)
    }

    pub(crate) fn at(address: SocketAddr, dashboard: Dashboard) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            let app: Router = Router::new().nest("/pools", dashboard.routes());
            let listener = TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
        Self {
            runtime: Some(runtime),
            address,
        }
    }

    pub(crate) fn url(&self, hash: &str) -> String {
        format!("http://{}/pools{hash}", self.address)
    }

    /// Stops it at once, and closes all connections.
    pub(crate) fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
