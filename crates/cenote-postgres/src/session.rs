//! The session: a connection whose statements are tracked. The functions have the names and the
//! arguments of the driver's.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Buf;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{BorrowToSql, ToSql, Type};
use tokio_postgres::{CancelToken, Client, Error, Row, SimpleQueryMessage};

use crate::cache::Cache;
use crate::connect::Line;
use crate::meaning::{Dirt, Meaning};
use crate::notifications::Notifications;
use crate::state::State;
use crate::statement::{Parts, Prepared, Statement, ToStatement};
use crate::template::Template;
use crate::tracked::{CopyInSink, CopyOutStream, RowStream, Tracked};

/// A connection to PostgreSQL, which a [`Lease`](crate::Lease) dereferences to.
///
/// Its functions are those of the driver's client. They borrow the session, so several can run at
/// the same time: join their futures, and the driver sends the statements without waiting for the
/// answers in between.
///
/// A future may be dropped at any time. If the server still works on its statement when the session
/// goes back to the pool, or when its transaction ends, the statement is cancelled first. Before
/// that, further statements of this session wait behind it.
pub struct Session {
    pub(crate) client: Client,
    pub(crate) line: Line,
    pub(crate) state: Arc<State>,
    pub(crate) cache: Cache,
    pub(crate) template: Arc<Template>,
    /// The number of the server's process, if statements may be cancelled.
    pub(crate) backend: Option<i32>,
    /// How many transactions of this crate are open, one inside the other.
    pub(crate) depth: usize,
}

/// Runs a call of the driver, and follows it. It is no function, because a future that is passed to
/// an `async fn` takes its room twice.
macro_rules! follow {
    ($session:expr, $meaning:expr, $call:expr) => {{
        let meaning = $meaning;
        let running = $session.state.start(meaning);
        let result = $call.await;
        running.end(result.as_ref().err());
        $session.forget_if(meaning);
        result
    }};
}

/// Runs a call of the driver on any kind of statement. A cached statement that the server has
/// forgotten, or whose plan is stale, is prepared again and tried once more.
macro_rules! run {
    ($session:ident, $statement:ident, |$given:ident| $call:expr) => {
        match $statement.parts() {
            Parts::Text($given) => follow!($session, Meaning::of_one($given), $call),
            Parts::Foreign($given) => follow!($session, Meaning::UNKNOWN, $call),
            Parts::Ours(ours) => {
                let meaning = ours.prepared().meaning;
                let $given = &ours.prepared().statement;
                match follow!($session, meaning, $call) {
                    Err(error) if $session.is_stale(ours, &error) => {
                        let again = Box::pin($session.prepare_again(ours)).await?;
                        let $given = &again.prepared().statement;
                        follow!($session, meaning, $call)
                    }
                    result => result,
                }
            }
        }
    };
}

impl Session {
    pub(crate) fn new(client: Client, line: Line, template: &Arc<Template>) -> Self {
        Self {
            client,
            line,
            state: Arc::default(),
            cache: Cache::new(template.cache_capacity),
            template: Arc::clone(template),
            backend: None,
            depth: 0,
        }
    }

    /// Prepares a statement, which lives as long as its value.
    pub async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        self.prepare_now(sql, &[], false).await
    }

    /// As [`prepare`](Session::prepare), with the types of parameters. The server infers those that
    /// are left out.
    pub async fn prepare_typed(&self, sql: &str, types: &[Type]) -> Result<Statement, Error> {
        self.prepare_now(sql, types, false).await
    }

    /// Returns the statement of this text from the cache of this connection, or prepares it.
    ///
    /// The cache keeps the statements that were used last, up to
    /// [`statement_cache_capacity`](crate::Builder::statement_cache_capacity).
    pub async fn prepare_cached(&self, sql: &str) -> Result<Statement, Error> {
        self.prepare_typed_cached(sql, &[]).await
    }

    /// As [`prepare_cached`](Session::prepare_cached), with the types of parameters.
    pub async fn prepare_typed_cached(
        &self,
        sql: &str,
        types: &[Type],
    ) -> Result<Statement, Error> {
        match self.cache.find(sql, types) {
            Some(statement) => Ok(statement),
            // Boxed, so that the future of a cached statement is small.
            None => Box::pin(self.prepare_now(sql, types, true)).await,
        }
    }

    /// Returns how many statements the cache of this connection has.
    pub fn cached_statements(&self) -> usize {
        self.cache.len()
    }

    /// Forgets all cached statements of this connection.
    pub fn clear_cached_statements(&self) {
        self.cache.clear();
    }

    /// Runs a statement, and returns its rows.
    pub async fn query<T>(
        &self,
        statement: &T,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        run!(self, statement, |given| self.client.query(given, params))
    }

    /// Runs a statement that returns one row. Another number of rows is an error.
    pub async fn query_one<T>(
        &self,
        statement: &T,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error>
    where
        T: ?Sized + ToStatement,
    {
        run!(self, statement, |given| self
            .client
            .query_one(given, params))
    }

    /// Runs a statement that returns one row or none. More rows are an error.
    pub async fn query_opt<T>(
        &self,
        statement: &T,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        run!(self, statement, |given| self
            .client
            .query_opt(given, params))
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub async fn execute<T>(
        &self,
        statement: &T,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error>
    where
        T: ?Sized + ToStatement,
    {
        run!(self, statement, |given| self.client.execute(given, params))
    }

    /// Runs a statement, and returns its rows as a stream. If the stream is dropped early, the rest
    /// of the rows is skipped.
    pub async fn query_raw<T, P, I>(&self, statement: &T, params: I) -> Result<RowStream<'_>, Error>
    where
        T: ?Sized + ToStatement,
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        let client = &self.client;
        match statement.parts() {
            Parts::Text(sql) => {
                let call = client.query_raw(sql, params);
                self.track(Meaning::of_one(sql), call).await
            }
            Parts::Ours(ours) => {
                let call = client.query_raw(&ours.prepared().statement, params);
                self.track(ours.prepared().meaning, call).await
            }
            Parts::Foreign(foreign) => {
                let call = client.query_raw(foreign, params);
                self.track(Meaning::UNKNOWN, call).await
            }
        }
    }

    /// Runs a text with typed parameters in one round trip, without a prepared statement.
    pub async fn query_typed(
        &self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        let call = self.client.query_typed(sql, params);
        self.run(Meaning::of_one(sql), call).await
    }

    /// Runs statements without parameters, and returns their rows as text.
    pub async fn simple_query(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        let call = self.client.simple_query(sql);
        self.run(Meaning::of_batch(sql), call).await
    }

    /// Runs statements without parameters. Several of them make the session dirty, so it is reset
    /// before its next use.
    pub async fn batch_execute(&self, sql: &str) -> Result<(), Error> {
        let call = self.client.batch_execute(sql);
        self.run(Meaning::of_batch(sql), call).await
    }

    /// Runs `COPY … FROM STDIN`, and returns a sink for the data. A sink that is not finished
    /// copies nothing.
    pub async fn copy_in<U>(&self, sql: &str) -> Result<CopyInSink<'_, U>, Error>
    where
        U: Buf + Send + 'static,
    {
        let call = self.client.copy_in(sql);
        self.track(Meaning::of_one(sql), call).await
    }

    /// Runs `COPY … TO STDOUT`, and returns a stream of the data.
    pub async fn copy_out(&self, sql: &str) -> Result<CopyOutStream<'_>, Error> {
        let call = self.client.copy_out(sql);
        self.track(Meaning::of_one(sql), call).await
    }

    /// Returns the notifications of the channels that this session listens to, from now on. A
    /// second call ends the first stream.
    ///
    /// Run `LISTEN channel` on this session, and keep its lease. When the lease ends, the session
    /// listens to nothing.
    pub fn notifications(&self) -> Notifications<'_> {
        self.line.outlet.open()
    }

    /// Returns a way to cancel the statement that runs on this connection.
    pub fn cancel_token(&self) -> CancelToken {
        self.client.cancel_token()
    }

    /// Returns whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Returns the driver's client, for functions that are not here. What it does is not tracked.
    /// So before the next use the session is settled, rolled back and reset, and cached statements
    /// are forgotten.
    pub fn client(&self) -> &Client {
        self.state.used_raw();
        &self.client
    }

    /// As [`client`](Session::client), for functions that need `&mut`.
    pub fn client_mut(&mut self) -> &mut Client {
        self.state.used_raw();
        &mut self.client
    }

    pub(crate) async fn run<T>(
        &self,
        meaning: Meaning,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        follow!(self, meaning, call)
    }

    /// Forgets the cached statements after a text that may have made the server forget them.
    fn forget_if(&self, meaning: Meaning) {
        if meaning.dirt.has(Dirt::PREPARED) {
            self.cache.clear();
        }
    }

    /// As [`run`](Session::run), for a call that goes on with what it returns.
    async fn track<T>(
        &self,
        meaning: Meaning,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<Tracked<'_, T>, Error> {
        let running = self.state.start(meaning);
        match call.await {
            Ok(stream) => Ok(Tracked::new(stream, running)),
            Err(error) => {
                running.end(Some(&error));
                Err(error)
            }
        }
    }

    /// Sends statements without waiting for their answer. The driver sends them when the call is
    /// polled, and skips the answer of a call that was dropped.
    pub(crate) fn queue(&self, sql: &str) {
        let sending = pin!(self.client.batch_execute(sql));
        let _ = sending.poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Returns the number of the server's process, if statements may be cancelled there.
    pub fn backend(&self) -> Option<i32> {
        self.backend
    }

    async fn prepare_now(
        &self,
        sql: &str,
        types: &[Type],
        cached: bool,
    ) -> Result<Statement, Error> {
        let preparing = self.client.prepare_typed(sql, types);
        let statement = self.run(Meaning::HARMLESS, preparing).await?;
        let statement = Statement::new(Prepared {
            statement,
            sql: sql.into(),
            types: types.into(),
            meaning: Meaning::of_one(sql),
            cached,
        });
        if cached {
            self.cache.keep(&statement);
        }
        Ok(statement)
    }

    async fn prepare_again(&self, statement: &Statement) -> Result<Statement, Error> {
        let Prepared { sql, types, .. } = statement.prepared();
        self.cache.forget(sql, types);
        self.prepare_now(sql, types, true).await
    }

    /// Returns whether the server refused a cached statement before it ran, and a second try can
    /// succeed. In a transaction the first failure counts.
    fn is_stale(&self, statement: &Statement, error: &Error) -> bool {
        let Some(error) = error.as_db_error() else {
            return false;
        };
        let code = error.code();
        let is_forgotten = *code == SqlState::INVALID_SQL_STATEMENT_NAME;
        // The code has other meanings, and the text of the error is translated.
        let is_outdated = *code == SqlState::FEATURE_NOT_SUPPORTED
            && error.routine() == Some("RevalidateCachedQuery");
        if is_forgotten || is_outdated {
            let Prepared { sql, types, .. } = statement.prepared();
            self.cache.forget(sql, types);
        }
        (is_forgotten || is_outdated)
            && statement.prepared().cached
            && !self.state.dirt().has(Dirt::TRANSACTION)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("backend", &self.backend)
            .field("is_closed", &self.is_closed())
            .field("depth", &self.depth)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
