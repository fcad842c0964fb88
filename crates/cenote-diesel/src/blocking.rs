//! The manager of diesel's own connections, whose calls block.

use std::fmt;
use std::sync::Arc;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager};
use diesel::connection::{Connection, Instrumentation};
use diesel::connection::{TransactionManager, TransactionManagerStatus};
use diesel::r2d2::R2D2Connection;
use diesel::result::ConnectionResult;

use crate::connection::{BlockingConnection, off_thread};
use crate::error::Error;
use crate::reset::Reset;
use crate::state::{Fitness, State, Transaction, is_postgres};
use crate::template::Template;
use crate::watch::Watch;

type Setup<C> = dyn Fn(&str) -> ConnectionResult<C> + Send + Sync;

/// A manager of diesel's own connections, such as `SqliteConnection`, `PgConnection` and
/// `MysqlConnection`. All their calls run on the threads that tokio keeps for blocking calls.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
/// use cenote_diesel::Blocking;
/// use cenote_diesel::diesel::{self, RunQueryDsl, SqliteConnection, sql_types::Integer};
///
/// let pool = Pool::builder(Blocking::<SqliteConnection>::new(":memory:")).max_size(1).build()?;
/// let mut lease = pool.acquire().await?;
/// let two = lease.run(|connection| {
///     diesel::select(diesel::dsl::sql::<Integer>("1 + 1")).get_result::<i32>(connection)
/// });
/// assert_eq!(two.await?, 2);
/// # Ok(()) }
/// ```
pub struct Blocking<C> {
    template: Template,
    /// The threads for blocking calls share it.
    setup: Arc<Setup<C>>,
}

impl<C: Connection + 'static> Blocking<C> {
    /// Makes a manager of connections to this database, which `C::establish` opens.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            template: Template::new(url.into()),
            setup: Arc::new(C::establish),
        }
    }

    /// Sets how a connection is opened, in place of `C::establish`. The closure may block.
    ///
    /// ```
    /// use cenote_diesel::Blocking;
    /// use cenote_diesel::diesel::connection::SimpleConnection;
    /// use cenote_diesel::diesel::{Connection, ConnectionError, SqliteConnection};
    ///
    /// let manager = Blocking::new("shop.db").custom_setup(|url| {
    ///     let mut connection = SqliteConnection::establish(url)?;
    ///     let set = connection.batch_execute("PRAGMA foreign_keys = ON");
    ///     set.map_err(ConnectionError::CouldntSetupConfiguration)?;
    ///     Ok(connection)
    /// });
    /// assert!(cenote::Pool::builder(manager).build().is_ok());
    /// ```
    pub fn custom_setup<F>(mut self, setup: F) -> Self
    where
        F: Fn(&str) -> ConnectionResult<C> + Send + Sync + 'static,
    {
        self.setup = Arc::new(setup);
        self
    }

    /// As [`Diesel::reset`](crate::Diesel::reset).
    pub fn reset(mut self, reset: Reset) -> Self {
        self.template.reset = reset;
        self
    }

    /// As [`Diesel::instrumentation`](crate::Diesel::instrumentation).
    pub fn instrumentation<I: Instrumentation>(
        mut self,
        make: impl Fn() -> I + Send + Sync + 'static,
    ) -> Self {
        self.template.instrumentation(make);
        self
    }
}

impl<C: R2D2Connection + 'static> Manager for Blocking<C> {
    type Resource = BlockingConnection<C>;
    type Error = Error;

    async fn open(&self) -> Result<BlockingConnection<C>, Error> {
        let setup = Arc::clone(&self.setup);
        let (url, watch) = (self.template.url.clone(), self.template.watch());
        let connection = off_thread(move || {
            let mut connection = setup(&url)?;
            connection.set_instrumentation(watch);
            Ok::<_, Error>(connection)
        });
        Ok(BlockingConnection::new(connection.await?))
    }

    fn classify(&self, error: &Error) -> ErrorClass {
        error.class()
    }

    async fn check(&self, resource: &mut BlockingConnection<C>) -> Result<(), Error> {
        let ping = resource.try_run(|connection| connection.ping());
        Ok(ping.await.ok_or(Error::Unfit)??)
    }

    /// A connection whose closure still runs may be fit. It is awaited by `clean`.
    fn is_broken(&self, resource: &mut BlockingConnection<C>, _: LeaseEnd) -> bool {
        if resource.is_away() {
            return false;
        }
        let connection = resource.here();
        connection.is_none_or(|here| state(here).fitness(&self.template.reset) == Fitness::Broken)
    }

    fn needs_cleaning(&self, resource: &mut BlockingConnection<C>) -> bool {
        let connection = resource.here();
        connection.is_none_or(|here| state(here).fitness(&self.template.reset) == Fitness::Dirty)
    }

    fn must_stay(&self, resource: &mut BlockingConnection<C>) -> bool {
        let connection = resource.here();
        connection.is_some_and(|here| state(here).must_stay())
    }

    async fn clean(&self, resource: &mut BlockingConnection<C>) -> Result<(), Error> {
        let reset = self.template.reset.clone();
        let clean = resource.try_run(move |connection| clean(connection, &reset));
        clean.await.ok_or(Error::Unfit)?
    }

    async fn close(&self, resource: BlockingConnection<C>) -> Result<(), Error> {
        resource.close().await;
        Ok(())
    }
}

fn clean<C: R2D2Connection + 'static>(connection: &mut C, reset: &Reset) -> Result<(), Error> {
    let found = state(connection);
    match found.fitness(reset) {
        Fitness::Fit => return Ok(()),
        Fitness::Dirty => {}
        Fitness::Broken => return Err(Error::Unfit),
    }
    if let Transaction::Test { depth } = found.transaction {
        for _ in 1..depth {
            C::TransactionManager::rollback_transaction(connection)?;
        }
    }
    let mut proof = Ok(());
    for sql in found.proofs() {
        proof = connection.batch_execute(sql);
        if proof.is_ok() {
            break;
        }
    }
    proof?;
    if found.transaction == Transaction::Open {
        *status(connection) = TransactionManagerStatus::default();
    }
    if let Some(sql) = found.undo(reset) {
        connection.batch_execute(sql)?;
    }
    Watch::cleaned(connection.instrumentation());
    state(connection).must_be_fit(reset)
}

fn status<C: Connection>(connection: &mut C) -> &mut TransactionManagerStatus {
    C::TransactionManager::transaction_manager_status_mut(connection)
}

fn state<C: R2D2Connection + 'static>(connection: &mut C) -> State {
    State {
        seen: Watch::seen(connection.instrumentation()),
        transaction: Transaction::of(status(connection)),
        is_broken: connection.is_broken()
            || C::TransactionManager::is_broken_transaction_manager(connection),
        is_postgres: is_postgres::<C::Backend>(),
    }
}

impl<C> fmt::Debug for Blocking<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}
