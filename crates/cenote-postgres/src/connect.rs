//! Connections: opened with any TLS connector, and each driven by a task of its own.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::error::DbError;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, Connection, Error, Socket};

use crate::error::told;
use crate::notifications::Outlet;

pub(crate) type OnNotice = dyn Fn(&DbError) + Send + Sync;

/// A TLS connector of any kind, so that no type of ours has a parameter for it.
pub(crate) trait Connect: Send + Sync {
    fn connect<'a>(
        &'a self,
        config: &'a Config,
        on_notice: Option<Arc<OnNotice>>,
    ) -> BoxFuture<'a, Result<(Client, Line), Error>>;

    /// Asks the server to cancel a statement, without knowing whether it did.
    fn cancel(&self, token: CancelToken) -> BoxFuture<'_, Result<(), Error>>;
}

pub(crate) struct With<T>(pub(crate) T);

impl<T> Connect for With<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn connect<'a>(
        &'a self,
        config: &'a Config,
        on_notice: Option<Arc<OnNotice>>,
    ) -> BoxFuture<'a, Result<(Client, Line), Error>> {
        let tls = self.0.clone();
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            Ok((client, Line::spawn(connection, on_notice)))
        })
    }

    fn cancel(&self, token: CancelToken) -> BoxFuture<'_, Result<(), Error>> {
        let tls = self.0.clone();
        Box::pin(async move { token.cancel_query(tls).await })
    }
}

/// The task of a connection. It ends when the connection does, or when this is dropped.
pub(crate) struct Line {
    task: JoinHandle<()>,
    lost: Arc<OnceLock<String>>,
    pub(crate) outlet: Arc<Outlet>,
}

impl Line {
    fn spawn<S, T>(mut connection: Connection<S, T>, on_notice: Option<Arc<OnNotice>>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (lost, outlet) = (Arc::<OnceLock<String>>::default(), Arc::<Outlet>::default());
        let (why, notifications) = (Arc::clone(&lost), Arc::clone(&outlet));
        // The connection is dropped last. A client that finds it closed also finds the reason.
        let task = tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match (message, &on_notice) {
                    (Ok(AsyncMessage::Notification(notification)), _) => {
                        notifications.send(notification);
                    }
                    (Ok(AsyncMessage::Notice(notice)), Some(code)) => {
                        // A panic of this code must not end the connection.
                        let _ = catch_unwind(AssertUnwindSafe(|| code(&notice)));
                    }
                    (Ok(_), _) => {}
                    (Err(error), _) => {
                        let _ = why.set(told(&error));
                        break;
                    }
                }
            }
            notifications.close();
        });
        Self { task, lost, outlet }
    }

    /// Returns why the connection was lost.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Returns a way to cut the connection from outside.
    pub(crate) fn abort_handle(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// Waits until the connection has ended, after its client was dropped.
    pub(crate) async fn end(&mut self) {
        // A task that panicked or was cut has ended, too.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}
