//! The manager of connections of diesel-async.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager};
use diesel::connection::{Instrumentation, TransactionManagerStatus};
use diesel::result::ConnectionResult;
use diesel_async::pooled_connection::PoolableConnection;
use diesel_async::{AsyncConnection, AsyncConnectionCore, TransactionManager};

use crate::end::end_statement;
use crate::error::Error;
use crate::reset::Reset;
use crate::state::{Fitness, State, Transaction, is_postgres};
use crate::template::Template;
use crate::watch::Watch;

type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Setup<C> = dyn for<'a> Fn(&'a str) -> Pending<'a, ConnectionResult<C>> + Send + Sync;

/// A manager of connections of diesel-async: `AsyncPgConnection`, `AsyncMysqlConnection` or
/// `SyncConnectionWrapper<SqliteConnection>`.
///
/// A lease dereferences to the connection, and is an `AsyncConnection` itself.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
/// use cenote_diesel::Diesel;
/// use cenote_diesel::diesel::{self, SqliteConnection, sql_types::Integer};
/// use cenote_diesel::diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use cenote_diesel::diesel_async::RunQueryDsl;
///
/// type Sqlite = SyncConnectionWrapper<SqliteConnection>;
///
/// let pool = Pool::builder(Diesel::<Sqlite>::new(":memory:")).max_size(1).build()?;
/// let mut lease = pool.acquire().await?;
/// let two = diesel::select(diesel::dsl::sql::<Integer>("1 + 1"));
/// assert_eq!(two.get_result::<i32>(&mut lease).await?, 2);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub struct Diesel<C> {
    template: Template,
    setup: Box<Setup<C>>,
}

impl<C: AsyncConnection + 'static> Diesel<C> {
    /// Makes a manager of connections to this database, which `C::establish` opens.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            template: Template::new(url.into()),
            setup: Box::new(|url| Box::pin(C::establish(url))),
        }
    }

    /// Sets how a connection is opened, in place of `C::establish`: with TLS, or with settings of
    /// its session. The closure is the one of diesel-async's `ManagerConfig`.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")] {
    /// use cenote_diesel::Diesel;
    /// use cenote_diesel::diesel::ConnectionError;
    /// use cenote_diesel::diesel_async::{
    ///     AsyncConnection, AsyncPgConnection, SimpleAsyncConnection,
    /// };
    ///
    /// let manager = Diesel::new("postgres://app@localhost/shop").custom_setup(|url| {
    ///     Box::pin(async move {
    ///         let mut connection = AsyncPgConnection::establish(url).await?;
    ///         let set = connection.batch_execute("SET statement_timeout = '5s'").await;
    ///         set.map_err(ConnectionError::CouldntSetupConfiguration)?;
    ///         Ok(connection)
    ///     })
    /// });
    /// assert!(cenote::Pool::builder(manager).build().is_ok());
    /// # }
    /// ```
    pub fn custom_setup<F>(mut self, setup: F) -> Self
    where
        F: Fn(&str) -> Pending<'_, ConnectionResult<C>> + Send + Sync + 'static,
    {
        self.setup = Box::new(setup);
        self
    }

    /// Sets what becomes of a connection whose session may have changed. Default
    /// [`Reset::Close`].
    pub fn reset(mut self, reset: Reset) -> Self {
        self.template.reset = reset;
        self
    }

    /// Sets the instrumentation of each connection. The default is diesel's own default.
    ///
    /// The pool notices by an instrumentation of its own what a user leaves behind, and passes all
    /// events on to this one. A connection whose instrumentation is replaced by a user is closed
    /// after that use. One that was set by [`custom_setup`](Diesel::custom_setup) is replaced by
    /// the pool.
    pub fn instrumentation<I: Instrumentation>(
        mut self,
        make: impl Fn() -> I + Send + Sync + 'static,
    ) -> Self {
        self.template.instrumentation(make);
        self
    }
}

impl<C: PoolableConnection + 'static> Manager for Diesel<C> {
    type Resource = C;
    type Error = Error;

    async fn open(&self) -> Result<C, Error> {
        let mut connection = (self.setup)(&self.template.url).await?;
        connection.set_instrumentation(self.template.watch());
        Ok(connection)
    }

    fn classify(&self, error: &Error) -> ErrorClass {
        error.class()
    }

    async fn check(&self, connection: &mut C) -> Result<(), Error> {
        Ok(connection.batch_execute("SELECT 1").await?)
    }

    fn is_broken(&self, connection: &mut C, _: LeaseEnd) -> bool {
        state(connection).fitness(&self.template.reset) == Fitness::Broken
    }

    fn needs_cleaning(&self, connection: &mut C) -> bool {
        state(connection).fitness(&self.template.reset) == Fitness::Dirty
    }

    fn must_stay(&self, connection: &mut C) -> bool {
        state(connection).must_stay()
    }

    async fn clean(&self, connection: &mut C) -> Result<(), Error> {
        let reset = &self.template.reset;
        let found = state(connection);
        if let Transaction::Test { depth } = found.transaction {
            for _ in 1..depth {
                C::TransactionManager::rollback_transaction(connection).await?;
            }
        }
        let mut proof = Ok(());
        for sql in found.proofs() {
            proof = connection.batch_execute(sql).await;
            if proof.is_ok() {
                break;
            }
        }
        proof?;
        if found.transaction == Transaction::Open {
            *status(connection) = TransactionManagerStatus::default();
        }
        if let Some(sql) = found.undo(reset) {
            connection.batch_execute(sql).await?;
        }
        Watch::cleaned(connection.instrumentation());
        state(connection).must_be_fit(reset)
    }

    async fn close(&self, mut connection: C) -> Result<(), Error> {
        let seen = Watch::seen(connection.instrumentation());
        if seen.is_some_and(|seen| seen.running > 0) {
            // The server should not go on with a statement whose caller is gone.
            end_statement(&mut connection).await;
        }
        Ok(())
    }
}

fn status<C: AsyncConnection>(connection: &mut C) -> &mut TransactionManagerStatus {
    C::TransactionManager::transaction_manager_status_mut(connection)
}

fn state<C: PoolableConnection + 'static>(connection: &mut C) -> State {
    State {
        seen: Watch::seen(connection.instrumentation()),
        transaction: Transaction::of(status(connection)),
        is_broken: connection.is_broken(),
        is_postgres: is_postgres::<<C as AsyncConnectionCore>::Backend>(),
    }
}

impl<C> fmt::Debug for Diesel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diesel")
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}
