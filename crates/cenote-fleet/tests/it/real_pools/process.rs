//! One process of a play: a runtime whose clock runs at a rate of its own, a real pool in a real
//! fleet, and callers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager, Pool};
use cenote_fleet::Fleet;
use cenote_fleet::protocol::MemberId;
use fastrand::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};

use super::TTL;
use crate::rig::{Line, Rig};
use crate::sim::server::Server;

pub(super) struct Process {
    pub(super) line: Arc<Line>,
    /// It does not run before this time of the world.
    pub(super) stopped_until: Duration,
    /// How fast its clock runs.
    rate: f64,
    /// What has passed while it did not run. Its clock goes on when it does.
    missed: Duration,
    callers: Vec<JoinHandle<()>>,
    fleet: Fleet,
    runtime: Runtime,
}

impl Process {
    pub(super) fn start(rig: &Rig, capacity: u32, rng: &mut Rng) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.unwrap();
        let (joining, _, line) = runtime.block_on(async { rig.prepare() });
        let sessions = Sessions {
            id: joining.id(),
            server: Arc::clone(&rig.server),
        };
        let (pool, fleet) = runtime.block_on(async {
            let pool = Pool::builder(sessions).acquire_timeout(None);
            let pool = pool.build().unwrap();
            let joining = joining.capacity(capacity).ttl(TTL);
            let fleet = joining.join(&pool).await.unwrap();
            (pool, fleet)
        });
        let callers = (0..rng.usize(2..9)).map(|_| {
            let call = call(pool.clone(), rng.fork());
            runtime.spawn(call)
        });
        Self {
            callers: callers.collect(),
            line,
            stopped_until: Duration::ZERO,
            rate: 0.9 + 0.2 * rng.f64(),
            missed: Duration::ZERO,
            fleet,
            runtime,
        }
    }

    pub(super) fn id(&self) -> MemberId {
        self.fleet.id()
    }

    /// Lets time pass that has begun at `now`.
    pub(super) fn pass(&mut self, now: Duration, time: Duration) {
        let time = time.mul_f64(self.rate);
        if now < self.stopped_until {
            self.missed += time;
            return;
        }
        let missed = std::mem::take(&mut self.missed);
        self.runtime.block_on(async {
            if !missed.is_zero() {
                advance(missed).await;
            }
            sleep(time).await;
        });
    }

    /// Its line works again, and it runs.
    pub(super) fn heal(&mut self) {
        self.stopped_until = Duration::ZERO;
        self.line.is_cut.store(false, Ordering::Relaxed);
        self.line.fails.store(false, Ordering::Relaxed);
        self.line.lost.store(0, Ordering::Relaxed);
    }

    /// Returns whether all its callers were served.
    pub(super) fn is_done(&self) -> bool {
        self.callers.iter().all(JoinHandle::is_finished)
    }
}

async fn call(pool: Pool<Sessions>, mut rng: Rng) {
    for _ in 0..rng.u8(3..10) {
        let lease = pool.acquire().await.unwrap();
        sleep(Duration::from_millis(rng.u64(..1500))).await;
        drop(lease);
        sleep(Duration::from_millis(rng.u64(..1500))).await;
    }
}

/// Opens sessions at the model server, which may have a limit.
struct Sessions {
    id: MemberId,
    server: Arc<Mutex<Server>>,
}

impl Manager for Sessions {
    type Resource = u64;
    type Error = &'static str;

    async fn open(&self) -> Result<u64, &'static str> {
        sleep(Duration::from_millis(5)).await;
        let session = self.server.lock().unwrap().open(self.id);
        session.ok_or("too many connections")
    }

    fn is_broken(&self, session: &mut u64, _: LeaseEnd) -> bool {
        !self.server.lock().unwrap().is_alive(*session)
    }

    async fn close(&self, session: u64) -> Result<(), &'static str> {
        sleep(Duration::from_millis(5)).await;
        self.server.lock().unwrap().end(session);
        Ok(())
    }

    fn classify(&self, _: &&'static str) -> ErrorClass {
        ErrorClass::Overloaded
    }
}
