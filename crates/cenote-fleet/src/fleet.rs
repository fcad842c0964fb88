//! The handle of a member, and how a pool joins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote::{Manager, Pool};
use tokio::sync::{oneshot, watch};

use crate::cell::MemberId;
use crate::engine::Engine;
use crate::error::JoinError;
use crate::governed::{self, Governed};
use crate::member::Member;
use crate::settings::Settings;
use crate::shell::{Reins, Shell};
use crate::status::FleetStatus;
use crate::step::Terms;

/// The membership of a pool in a fleet. The fleet sets the size of the pool from now on.
///
/// When the handle is dropped or the pool is closed, the member leaves: the pool is suspended, its
/// connections are closed as they come back, and the others get its share. That happens in the
/// background, and [`leave`](Fleet::leave) waits for it. The fleet keeps the pool alive until then.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_fleet::{Fleet, Memory};
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// let fleet = Fleet::on(Memory::new()).capacity(80).join(&pool).await?;
///
/// drop(pool.acquire().await?);
/// assert!(pool.status().max_size <= 80);
/// fleet.leave().await;
/// assert!(pool.is_suspended());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Fleet {
    /// The member stays until this is dropped.
    _stay: oneshot::Sender<()>,
    watch: FleetWatch,
}

impl Fleet {
    /// Begins to join the group whose cell is in this engine.
    pub fn on<E: Engine>(engine: E) -> Joining<E> {
        Joining::new(engine, MemberId(fastrand::u64(..)))
    }

    /// Returns the name of this member.
    pub fn id(&self) -> MemberId {
        self.watch.id
    }

    /// Returns what this member knew after its last round.
    pub fn status(&self) -> FleetStatus {
        self.watch.status()
    }

    /// Waits until the status has changed since the last call, and returns it. Returns `None` when
    /// the member has left because its pool was closed. [`FleetStatus::changes_since`] tells what
    /// has changed.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn changed(&mut self) -> Option<FleetStatus> {
        self.watch.changed().await
    }

    /// Returns a handle for a page or an exporter. It does not keep the member in the fleet.
    pub fn watch(&self) -> FleetWatch {
        self.watch.clone()
    }

    /// Leaves the fleet, and waits until all connections of the pool are closed and the others know
    /// it. The pool stays suspended. It may join again.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    pub async fn leave(self) {
        let Self { _stay, mut watch } = self;
        drop(_stay);
        while watch.changed().await.is_some() {}
    }
}

/// A handle to look at a member from elsewhere, made by [`Fleet::watch`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_fleet::{Fleet, Memory};
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).name("orders").build()?;
/// let fleet = Fleet::on(Memory::new()).capacity(80).join(&pool).await?;
/// let watch = fleet.watch();
///
/// assert_eq!((watch.pool(), watch.status().capacity), ("orders", 80));
/// fleet.leave().await;
/// assert!(watch.has_left());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct FleetWatch {
    id: MemberId,
    pool: Arc<str>,
    pool_number: u64,
    status: watch::Receiver<FleetStatus>,
}

impl FleetWatch {
    /// Returns the name of the member.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Returns the name of its pool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Returns the [number](Pool::number) of its pool.
    pub fn pool_number(&self) -> u64 {
        self.pool_number
    }

    /// Returns what the member knew after its last round.
    pub fn status(&self) -> FleetStatus {
        self.status.borrow().clone()
    }

    /// Does what [`Fleet::changed`] does. Returns `None` when the member has left.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn changed(&mut self) -> Option<FleetStatus> {
        self.status.changed().await.ok()?;
        Some(self.status.borrow_and_update().clone())
    }

    /// Returns whether the member has left, or its task has ended with its runtime.
    pub fn has_left(&self) -> bool {
        self.status.has_changed().is_err()
    }
}

/// A pool that is about to join a fleet. [`Fleet`] has an example.
#[derive(Debug)]
pub struct Joining<E> {
    pub(crate) engine: E,
    id: MemberId,
    pub(crate) settings: Settings,
}

impl<E: Engine> Joining<E> {
    pub(crate) fn new(engine: E, id: MemberId) -> Self {
        Self {
            engine,
            id,
            settings: Settings::default(),
        }
    }

    /// Returns the name that the member will have.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Sets all settings at once.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets [`Settings::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets [`Settings::capacity`].
    pub fn capacity(mut self, capacity: u32) -> Self {
        self.settings.capacity = capacity;
        self
    }

    /// Sets [`Settings::floor`].
    pub fn floor(mut self, floor: u32) -> Self {
        self.settings.floor = floor;
        self
    }

    /// Sets [`Settings::weight`].
    pub fn weight(mut self, weight: u32) -> Self {
        self.settings.weight = weight;
        self
    }

    /// Sets [`Settings::overhead`].
    pub fn overhead(mut self, overhead: u32) -> Self {
        self.settings.overhead = overhead;
        self
    }

    /// Sets [`Settings::ttl`].
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// Sets [`Settings::members_max`].
    pub fn members_max(mut self, members: u32) -> Self {
        self.settings.members_max = Some(members);
        self
    }

    /// Joins. The pool should be new: connections that it has are closed first, and callers wait
    /// until the pool has a share. The pool has none yet if the others have to make room, or if the
    /// cell was lost and is learned again. If the server has no place for the control connection,
    /// it is tried again for a TTL.
    ///
    /// A task of the present runtime renews the share from now on. When that runtime ends, the pool
    /// is suspended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the pool is left suspended. The others may see a silent member,
    /// and bury it.
    pub async fn join<M: Manager + 'static>(self, pool: &Pool<M>) -> Result<Fleet, JoinError> {
        if self.engine.sessions() > 0 && pool.manager().shares_sessions() {
            return Err(JoinError::SharedSessions);
        }
        let (least, annex) = (governed::least(pool), governed::annex_size(pool));
        let terms = self.settings.terms(least, annex, self.engine.sessions())?;
        let reins = Arc::new(governed::Reins::new(pool));
        let named = (pool.name().into(), pool.number());
        self.enter(terms, reins, named).await
    }

    async fn enter(
        self,
        terms: Terms,
        pool: Arc<dyn Governed>,
        (name, pool_number): (Arc<str>, u64),
    ) -> Result<Fleet, JoinError> {
        let (sender, status) = watch::channel(FleetStatus::new(self.id));
        let (stay, is_dropped) = oneshot::channel();
        let member = Member::new(self.id, terms);
        let reins = Reins::new(member, Arc::clone(&pool), self.settings.ttl, sender.clone());
        let mut shell = Shell::new(self.engine, reins);
        shell.join().await.map_err(JoinError::of_round)?;
        let watch = FleetWatch {
            id: self.id,
            pool: name,
            pool_number,
            status,
        };
        #[cfg(feature = "tracing")]
        tokio::spawn(crate::log::keep(watch.clone()));
        let seen = watch.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = shell.run(is_dropped) => {}
                () = keep_note(&*pool, seen) => {}
            }
            // A member that leaves waits for this, so that the note of its next fleet stays.
            drop(sender);
        });
        Ok(Fleet { _stay: stay, watch })
    }
}

/// Tells the callers of the pool how the fleet stands, in their timeout errors.
async fn keep_note(pool: &dyn Governed, mut watch: FleetWatch) {
    let mut told = String::new();
    while let Some(status) = watch.changed().await {
        let text = status.to_string();
        if text != told {
            pool.note(Some(&text));
            told = text;
        }
    }
}

impl fmt::Display for Fleet {
    /// Who has how much, the largest first: a line for a log or for the error of a caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status().fmt(f)
    }
}
