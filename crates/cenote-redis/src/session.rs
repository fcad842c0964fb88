//! The session: a connection, with a record of what may have to be undone.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    Cmd, ErrorKind, Pipeline, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisFuture,
    RedisResult, ServerErrorKind, Value,
};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::error::{is_broken, lost, no_answer, refused};
use crate::login::{self, first_error};
use crate::messages::Mailbox;
use crate::reading::{Dirt, Reading};
use crate::wire::Wire;

/// The resource of the pool: a connection, with a record of what its user has changed.
///
/// Hooks of the pool get it, and so does a caller that detaches a [`Lease`](crate::Lease). It is a
/// [`ConnectionLike`], so that commands run on `&mut session`.
pub struct Session {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) wire: Wire,
    state: State,
    /// How the connection logged in.
    login: RedisConnectionInfo,
    limit: Option<Duration>,
    messages: Mailbox,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    dirt: Dirt,
    /// Whether the answer of a command may be outstanding, whose caller is gone.
    unsettled: bool,
    /// Whether the connection must not be used again, although it is there.
    spent: bool,
}

impl Session {
    pub(crate) fn new(
        connection: MultiplexedConnection,
        wire: Wire,
        login: RedisConnectionInfo,
        limit: Option<Duration>,
        messages: Mailbox,
    ) -> Self {
        Self {
            connection,
            wire,
            state: State::default(),
            login,
            limit,
            messages,
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state.spent || self.wire.has_ended()
    }

    /// Returns whether something must be undone before the next use.
    pub(crate) fn is_dirty(&self) -> bool {
        self.state.dirt != Dirt::NONE || self.state.unsettled
    }

    /// Returns whether the next command of the same scope needs this session.
    pub(crate) fn must_stay(&self) -> bool {
        self.state.dirt != Dirt::NONE
    }

    /// Asks the server for a sign of life.
    pub(crate) async fn ping(&mut self) -> RedisResult<()> {
        let ping = redis::cmd("PING");
        let answer = self.connection.send_packed_command(&ping).await?;
        answer.extract_error()?;
        Ok(())
    }

    /// Undoes what was left behind. An answer that is outstanding comes first.
    pub(crate) async fn clean(&mut self) -> RedisResult<()> {
        if self.state.dirt == Dirt::NONE {
            self.ping().await?;
        } else {
            login::reset(&mut self.connection, &self.login).await?;
        }
        self.messages.hang_up();
        self.state = State::default();
        Ok(())
    }

    /// Returns the messages that the server sends from now on.
    pub(crate) fn listen(&mut self) -> UnboundedReceiver<PushInfo> {
        self.messages.listen()
    }

    /// Runs a command or a pipeline, and keeps the record. `None`: it is plain.
    async fn run<T: Answer>(
        &mut self,
        reading: Option<Reading>,
        send: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let before = self.begin(reading.as_ref())?;
        let blocks = reading.as_ref().is_some_and(Reading::blocks);
        let limit = self.limit.filter(|_| !blocks);
        let mut running = Running {
            unsettled: &mut self.state.unsettled,
            wire: &self.wire,
            blocks,
            answered: false,
        };
        let answer = within(limit, send).await;
        // After a timeout the answer can still come.
        running.answered = answer.is_some();
        drop(running);
        let answer = answer.unwrap_or_else(|| Err(no_answer(limit)));
        if answer.as_ref().is_err_and(is_broken) {
            self.wire.sever();
        }
        if answer.as_ref().is_ok_and(Answer::is_read_only) {
            // The server is no longer the master. A new connection may find the new one.
            self.state.spent = true;
        }
        if let Some(reading) = reading
            && is_settled(&answer)
        {
            self.state.dirt = reading.dirt_after(before);
        }
        answer
    }

    /// Notes what may be there from now on, and returns what was there before.
    fn begin(&mut self, reading: Option<&Reading>) -> RedisResult<Dirt> {
        let before = self.state.dirt;
        if let Some(refusal) = reading.and_then(|reading| reading.refusal(self.has_messages())) {
            return Err(refused(refusal));
        }
        if self.wire.has_ended() {
            if reading.is_some_and(Reading::gives_up) {
                // The server has forgotten it already. So the session leaves its scope.
                self.state.dirt = Dirt::NONE;
            }
            return Err(lost());
        }
        if let Some(reading) = reading {
            self.state.dirt = reading.dirt_at_worst(before);
        }
        Ok(before)
    }

    fn has_messages(&self) -> bool {
        self.login.protocol() != ProtocolVersion::RESP2
    }
}

/// Commands run as on a connection of the crate `redis`. A dropped call of a blocking command cuts
/// the connection, so that the server does not hand an element to a caller that is gone.
impl ConnectionLike for Session {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let reading = Reading::of_command(command, self.login.db());
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let send = connection.send_packed_command(command);
            self.run(reading, send).await
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let reading = Reading::of_pipeline(pipeline, self.login.db());
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let send = connection.send_packed_commands(pipeline, offset, count);
            self.run(reading, send).await
        })
    }

    fn get_db(&self) -> i64 {
        self.login.db()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("wire", &self.wire)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// A command whose answer is outstanding. Dropping it before it is answered is what a cancelled
/// caller does.
struct Running<'a> {
    unsettled: &'a mut bool,
    wire: &'a Wire,
    blocks: bool,
    answered: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        *self.unsettled = true;
        if self.blocks {
            self.wire.sever();
        }
    }
}

/// What the driver returns for a command or a pipeline.
pub(crate) trait Answer {
    fn answers(&self) -> &[Value];

    fn has(&self, kind: ServerErrorKind) -> bool {
        first_error(self.answers()).is_some_and(|error| error.kind() == Some(kind))
    }

    fn is_read_only(&self) -> bool {
        self.has(ServerErrorKind::ReadOnly)
    }
}

impl Answer for Value {
    fn answers(&self) -> &[Value] {
        std::slice::from_ref(self)
    }
}

impl Answer for Vec<Value> {
    fn answers(&self) -> &[Value] {
        self
    }
}

/// Returns whether all commands have had their effects, or `EXEC` has ended a transaction.
fn is_settled<T: Answer>(answer: &RedisResult<T>) -> bool {
    let aborted = ServerErrorKind::ExecAbort;
    match answer {
        Ok(answer) => first_error(answer.answers()).is_none() || answer.has(aborted),
        Err(error) => error.kind() == ErrorKind::Server(aborted),
    }
}

/// Returns `None` when the time is over.
pub(crate) async fn within<T>(limit: Option<Duration>, send: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, send).await.ok(),
        None => Some(send.await),
    }
}
