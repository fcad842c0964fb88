//! Two engines in one: the first keeps the cell, and the second counts and fences.

use crate::cell::MemberId;
use crate::engine::{Engine, EngineError, Snapshot};
use crate::fleet::Joining;
use crate::step::Counts;

/// Keeps the cell in one engine, and counts and ends the sessions by another, which is the server
/// of the pooled connections. [`Joining::counted_by`] makes it.
#[derive(Debug)]
pub struct Counted<E, C> {
    keeper: E,
    counter: C,
}

impl<E: Engine> Joining<E> {
    /// Lets the server of the pooled connections count and end the sessions of the members, while
    /// the cell stays where it is. So the budget is hard with an engine that is not the database.
    ///
    /// The member takes its name from `counter`, whose tag the pool must be built with. The
    /// settings stay those of `self`. The table of the cells is not needed at the server.
    ///
    /// ```no_run
    /// # #[cfg(all(feature = "redis", feature = "postgres"))]
    /// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::Fleet;
    /// use cenote_postgres::Pool;
    ///
    /// let mut options: tokio_postgres::Config = "postgres://app@localhost/shop".parse()?;
    /// let counter = Fleet::postgres(&options, "orders")?;
    /// options.application_name(counter.tag("api"));
    /// let pool = Pool::with_options(options).build()?;
    /// let redis = redis::Client::open("redis://localhost")?;
    /// let joining = Fleet::redis(&redis, "orders")?.counted_by(counter);
    /// let fleet = joining.capacity(80).overhead(1).join(&pool).await?;
    /// # drop(fleet);
    /// # Ok(()) }
    /// ```
    pub fn counted_by<C: Engine>(self, counter: Joining<C>) -> Joining<Counted<E, C>> {
        let id = counter.id();
        let settings = self.settings.clone();
        let engine = Counted {
            keeper: self.engine,
            counter: counter.engine,
        };
        Joining::new(engine, id).settings(settings)
    }
}

impl<E: Engine, C: Engine> Engine for Counted<E, C> {
    type Version = E::Version;

    async fn connect(&mut self) -> Result<(), EngineError> {
        self.keeper.connect().await?;
        self.counter.connect().await
    }

    async fn read(&mut self) -> Result<Snapshot<E::Version>, EngineError> {
        self.keeper.read().await
    }

    async fn swap(&mut self, version: &E::Version, bytes: &[u8]) -> Result<bool, EngineError> {
        self.keeper.swap(version, bytes).await
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        self.keeper.nudge().await
    }

    async fn nudged(&mut self) {
        tokio::select! {
            () = self.keeper.nudged() => {}
            () = self.counter.nudged() => {}
        }
    }

    fn sessions(&self) -> u32 {
        self.counter.sessions()
    }

    fn is_connected(&self) -> bool {
        self.keeper.is_connected() && self.counter.is_connected()
    }

    async fn count(&mut self) -> Result<Option<Counts>, EngineError> {
        self.counter.count().await
    }

    async fn fence(&mut self, member: MemberId) -> Result<(), EngineError> {
        self.counter.fence(member).await
    }

    fn only_look(&mut self) {
        self.keeper.only_look();
        self.counter.only_look();
    }

    async fn groups(&mut self) -> Result<Option<Vec<String>>, EngineError> {
        self.keeper.groups().await
    }
}
