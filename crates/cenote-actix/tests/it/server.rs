//! A real server of actix-web, with workers that have a thread and a runtime each.

use std::thread::{self, JoinHandle};

use actix_web::body::MessageBody;
use actix_web::dev::{ServerHandle, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, Error, HttpServer, rt};

use crate::client::Client;

/// Serves on a free port until it is dropped.
pub(crate) struct Server {
    pub(crate) client: Client,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl std::ops::Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// What `HttpServer` can serve.
pub(crate) trait Served<B>:
    ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<B>,
        Error = Error,
        InitError = (),
    > + 'static
{
}

impl<T, B> Served<B> for T where
    T: ServiceFactory<
            ServiceRequest,
            Config = (),
            Response = ServiceResponse<B>,
            Error = Error,
            InitError = (),
        > + 'static
{
}

/// Serves this app on two workers.
pub(crate) fn serve<T: Served<B>, B: MessageBody + 'static>(
    app: impl Fn() -> App<T> + Send + Clone + 'static,
) -> Server {
    serve_with(true, app)
}

/// As [`serve`]. If `half_closed` is false, a client that has closed its half is taken as gone.
pub(crate) fn serve_with<T: Served<B>, B: MessageBody + 'static>(
    half_closed: bool,
    app: impl Fn() -> App<T> + Send + Clone + 'static,
) -> Server {
    let (send, receive) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        rt::System::new().block_on(async move {
            let server = HttpServer::new(app)
                .workers(2)
                .disable_signals()
                .h1_allow_half_closed(half_closed)
                .bind(("127.0.0.1", 0))
                .unwrap();
            let address = server.addrs()[0];
            let server = server.run();
            send.send((address, server.handle())).unwrap();
            server.await.unwrap();
        });
    });
    let (address, handle) = receive.recv().unwrap();
    Server {
        client: Client(address),
        handle,
        thread: Some(thread),
    }
}

impl Server {
    /// Stops it after all requests have ended.
    pub(crate) async fn stop(&self) {
        self.handle.stop(true).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The command is sent at the call, and its future waits for the end only.
        drop(self.handle.stop(false));
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended.filter(|_| !thread::panicking()) {
            std::panic::resume_unwind(panic);
        }
    }
}
