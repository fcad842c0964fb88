//! Cancelling a statement whose future was dropped, and the wait until its session is quiet.
//!
//! The driver's own cancel request does not wait for the server. It could come late, and cancel a
//! statement of the next user. So the request is a statement on another connection. When that has
//! returned, the signal was sent, and the session meets it before its next statement.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connect::Line;
use crate::error::Error;
use crate::session::Session;
use crate::template::Template;

/// Most dropped statements end by themselves in this time, so that no request is needed.
const SOON: Duration = Duration::from_millis(10);

/// The longest time between two requests for one session.
const LATER: Duration = Duration::from_secs(1);

impl Session {
    /// Waits until the server has answered everything that was sent, if a statement was dropped. A
    /// statement that takes longer than [`SOON`] is cancelled. No other future may use the session.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        if !self.state.is_interrupted() {
            return Ok(());
        }
        let mut quiet = pin!(self.client.batch_execute(""));
        let mut patience = SOON;
        let answered = loop {
            if let Ok(answered) = timeout(patience, &mut quiet).await {
                break answered;
            }
            // A request that comes before its statement has begun does nothing, so it is repeated.
            self.cancel().await?;
            patience = (patience * 2).min(LATER);
        };
        match answered {
            // The request met the empty statement behind the dropped one.
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                self.client.batch_execute("").await?;
            }
            answered => answered?,
        }
        self.state.settled();
        Ok(())
    }

    async fn cancel(&self) -> Result<(), Error> {
        let Some(backend) = self.backend else {
            let why = "a statement was dropped, and cancelling is switched off";
            return Err(Error::lost(why));
        };
        self.template
            .canceller
            .cancel(&self.template, backend)
            .await
    }
}

/// The connection that sends cancel requests. It is opened on demand, shared by requests at the
/// same time, and closed after the last of them.
#[derive(Default)]
pub(crate) struct Canceller {
    requests: AtomicUsize,
    connection: Mutex<Option<(Client, Line)>>,
}

impl Canceller {
    async fn cancel(&self, template: &Template, backend: i32) -> Result<(), Error> {
        self.requests.fetch_add(1, Ordering::AcqRel);
        let _turn = Turn(self);
        let mut connection = self.connection.lock().await;
        // Out while it is used: a request that is dropped or fails closes it.
        let (client, line) = match connection.take().filter(|(client, _)| !client.is_closed()) {
            Some(connected) => connected,
            None => template.connect().await?,
        };
        let sql = format!("SELECT pg_cancel_backend({backend})");
        client.batch_execute(&sql).await?;
        *connection = Some((client, line));
        Ok(())
    }
}

/// A request under way.
struct Turn<'a>(&'a Canceller);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let is_last = self.0.requests.fetch_sub(1, Ordering::AcqRel) == 1;
        // If another request has the lock, that request is the last.
        if let (true, Ok(mut connection)) = (is_last, self.0.connection.try_lock()) {
            *connection = None;
        }
    }
}
