//! The live page of the demo, on a free port of this machine.

use std::future::IntoFuture;
use std::io::{self, Write};

use axum::Router;
use cenote_dashboard::Dashboard;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server of the page, which ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Page(JoinHandle<io::Result<()>>);

impl Page {
    /// Starts the server, and prints its address.
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        writeln!(io::stderr(), "the live page: http://{address}/")?;
        let routes: Router = Dashboard::new().host(address).routes();
        let server = axum::serve(listener, routes).into_future();
        Ok(Self(tokio::spawn(server)))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.0.abort();
    }
}
