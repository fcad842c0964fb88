//! The rig: real pools on a model server that counts its sessions, with an engine under control.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cenote::{Lease, LeaseEnd, Manager, Pool};
use cenote_fleet::engine::{Engine, EngineError, Snapshot};
use cenote_fleet::protocol::{Counts, MemberId};
use cenote_fleet::{Fleet, Joining, Memory};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::sim::server::Server;

/// What must happen happens before this, on the paused clock.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A server and the memory that its members share.
pub(crate) struct Rig {
    pub(crate) server: Arc<Mutex<Server>>,
    pub(crate) memory: Memory,
    /// The server can count and end sessions.
    pub(crate) can_count: bool,
}

/// A member: its pool, its handle, and its line to the engine.
pub(crate) struct Seat {
    pub(crate) pool: Pool<Sessions>,
    pub(crate) fleet: Fleet,
    pub(crate) line: Arc<Line>,
}

/// The line of one member to the engine.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// No call is answered.
    pub(crate) is_cut: AtomicBool,
    /// Every call fails.
    pub(crate) fails: AtomicBool,
    /// The connection of the engine is lost.
    pub(crate) is_lost: AtomicBool,
    /// How long each call takes at most, in milliseconds.
    pub(crate) latency: AtomicU64,
    /// Of a thousand requests and answers, so many are lost.
    pub(crate) lost: AtomicU64,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self {
            server: Arc::new(Mutex::new(Server::new(None))),
            memory: Memory::new(),
            can_count: true,
        }
    }

    pub(crate) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap()
    }

    /// The most sessions that there were at once.
    pub(crate) fn peak(&self) -> u32 {
        self.server().peak
    }

    pub(crate) fn sessions(&self) -> u32 {
        self.server().count()
    }

    /// A pool and a member that has not joined yet.
    pub(crate) fn prepare(&self) -> (Joining<Rigged>, Pool<Sessions>, Arc<Line>) {
        let line = Arc::new(Line::default());
        let joining = Fleet::on(Rigged {
            memory: self.memory.clone(),
            server: self.can_count.then(|| Arc::clone(&self.server)),
            line: Arc::clone(&line),
        });
        let sessions = Sessions::new(joining.id(), &self.server);
        let pool = Pool::builder(sessions).acquire_timeout(None);
        (joining, pool.build().unwrap(), line)
    }

    pub(crate) async fn join(&self, capacity: u32) -> Seat {
        self.join_with(|joining| joining.capacity(capacity)).await
    }

    pub(crate) async fn join_with(
        &self,
        set: impl FnOnce(Joining<Rigged>) -> Joining<Rigged>,
    ) -> Seat {
        let (joining, pool, line) = self.prepare();
        let fleet = set(joining).join(&pool).await.unwrap();
        Seat { pool, fleet, line }
    }
}

impl Seat {
    /// Callers that want to hold `count` connections, each for ever.
    pub(crate) fn want(&self, count: usize) -> Vec<JoinHandle<Lease<Sessions>>> {
        let acquire = |_| {
            let pool = self.pool.clone();
            tokio::spawn(async move { pool.acquire().await.unwrap() })
        };
        (0..count).map(acquire).collect()
    }

    /// Lets the pool lend so many at once, so that it has that share afterwards.
    pub(crate) async fn grow(&self, count: usize) {
        let callers = self.want(count);
        self.lends(count).await;
        give_back(callers);
        self.lends(0).await;
    }

    pub(crate) fn in_use(&self) -> usize {
        self.pool.status().in_use
    }

    pub(crate) fn share(&self) -> u32 {
        self.fleet.status().share
    }

    /// Waits until the pool lends so many.
    pub(crate) async fn lends(&self, count: usize) {
        let what = || format!("{:?} {:?}", self.pool.status(), self.fleet.status());
        eventually(what, || self.in_use() == count).await;
    }

    pub(crate) async fn has_share(&self, share: u32) {
        let what = || format!("{:?}", self.fleet.status());
        eventually(what, || self.share() == share).await;
    }
}

/// Gives the connections back, also those that are still waited for.
pub(crate) fn give_back(callers: Vec<JoinHandle<Lease<Sessions>>>) {
    callers.into_iter().for_each(|caller| {
        tokio::spawn(async move { drop(caller.await) });
    });
}

/// Waits on the paused clock.
pub(crate) async fn eventually(what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let reached = timeout(LIMIT, async {
        while !holds() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    if reached.await.is_err() {
        panic!("never: {}", what());
    }
}

/// Opens sessions at the model server.
pub(crate) struct Sessions {
    id: MemberId,
    server: Arc<Mutex<Server>>,
}

impl Sessions {
    pub(crate) fn new(id: MemberId, server: &Arc<Mutex<Server>>) -> Self {
        let server = Arc::clone(server);
        Self { id, server }
    }
}

impl Manager for Sessions {
    type Resource = u64;
    type Error = Infallible;

    async fn open(&self) -> Result<u64, Infallible> {
        sleep(Duration::from_millis(5)).await;
        let session = self.server.lock().unwrap().open(self.id);
        Ok(session.expect("this server has no limit"))
    }

    fn is_broken(&self, session: &mut u64, _: LeaseEnd) -> bool {
        !self.server.lock().unwrap().is_alive(*session)
    }

    async fn close(&self, session: u64) -> Result<(), Infallible> {
        sleep(Duration::from_millis(5)).await;
        self.server.lock().unwrap().end(session);
        Ok(())
    }
}

/// An engine in memory behind a line that can be cut.
#[derive(Debug)]
pub(crate) struct Rigged {
    memory: Memory,
    server: Option<Arc<Mutex<Server>>>,
    line: Arc<Line>,
}

impl Rigged {
    async fn way(&self) -> Result<(), EngineError> {
        let lost = self.line.lost.load(Ordering::Relaxed);
        if self.line.is_cut.load(Ordering::Relaxed) || fastrand::u64(..1000) < lost {
            pending::<()>().await;
        }
        if self.line.fails.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        }
        let latency = self.line.latency.load(Ordering::Relaxed);
        sleep(Duration::from_millis(fastrand::u64(..=latency))).await;
        Ok(())
    }
}

impl Engine for Rigged {
    type Version = u64;

    async fn read(&mut self) -> Result<Snapshot<u64>, EngineError> {
        self.way().await?;
        self.memory.read().await
    }

    async fn swap(&mut self, version: &u64, bytes: &[u8]) -> Result<bool, EngineError> {
        self.way().await?;
        let is_won = self.memory.swap(version, bytes).await?;
        // The answer may be lost.
        self.way().await?;
        Ok(is_won)
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        self.way().await?;
        self.memory.nudge().await
    }

    async fn nudged(&mut self) {
        self.memory.nudged().await;
    }

    fn is_connected(&self) -> bool {
        !self.line.is_lost.load(Ordering::Relaxed)
    }

    async fn count(&mut self) -> Result<Option<Counts>, EngineError> {
        self.way().await?;
        let server = self.server.as_ref();
        Ok(server.map(|server| server.lock().unwrap().counts()))
    }

    async fn fence(&mut self, member: MemberId) -> Result<(), EngineError> {
        self.way().await?;
        if let Some(server) = &self.server {
            server.lock().unwrap().end_all_of(member);
        }
        Ok(())
    }
}
