//! Members on real engines, in this runtime or in one that is stopped or killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote::{Lease, Manager, Pool};
use cenote_fleet::engine::Engine;
use cenote_fleet::protocol::MemberId;
use cenote_fleet::{Fleet, JoinError, Joining};
use cenote_testkit::{Proxy, Way};
use tokio::task;
use tokio::time::{sleep, timeout};

/// What must happen happens long before this, also on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Short, because some tests wait for its end.
pub(crate) const TTL: Duration = Duration::from_secs(4);

/// All sessions of all members.
pub(crate) const CAPACITY: u32 = 12;

/// An engine on a private server, and the server of the pooled connections.
pub(crate) trait Place: Sized + Send + Sync + 'static {
    type Manager: Manager + 'static;

    /// The sessions of a member beside its pool: its control connection and its canceller.
    const OVERHEAD: u32;
    /// The engine counts the sessions, and ends those of a silent member.
    const FENCES: bool;
    /// A restart of the engine is seen as a loss.
    const LEARNS_AFTER_RESTART: bool;

    /// Starts the servers, and makes a group that is known to be new.
    async fn start() -> Self;
    fn try_join(
        &self,
        ttl: Duration,
    ) -> impl Future<Output = Result<Seat<Self::Manager>, JoinError>>;
    /// Counts the sessions of all members at the server of the pooled connections.
    fn count(&self) -> impl Future<Output = u32> + Send;
    fn restart(&self);
    /// Loses the cell.
    async fn wipe(&self);
    /// Remembers the present value of the cell.
    async fn save(&mut self);
    /// Puts the value back that was saved.
    async fn put_back(&self);
    /// The process of a member was killed: the system closes its connections.
    fn was_killed(&self, _: MemberId) {}

    /// Joins, and tries again if the server was too slow.
    fn join(&self) -> impl Future<Output = Seat<Self::Manager>> {
        self.join_for(TTL)
    }

    fn join_for(&self, ttl: Duration) -> impl Future<Output = Seat<Self::Manager>> {
        async move {
            let joined = timeout(LIMIT, async {
                loop {
                    match self.try_join(ttl).await {
                        Ok(seat) => break seat,
                        Err(error) => assert!(error.is_retryable(), "{error:?}"),
                    }
                }
            });
            joined.await.unwrap()
        }
    }
}

pub(crate) struct Seat<M: Manager + 'static> {
    pub(crate) pool: Pool<M>,
    pub(crate) fleet: Fleet,
}

impl<M: Manager + 'static> Seat<M> {
    pub(crate) async fn take<E: Engine>(
        joining: Joining<E>,
        pool: &Pool<M>,
        ttl: Duration,
    ) -> Result<Self, JoinError> {
        let fleet = joining.capacity(CAPACITY).ttl(ttl).join(pool).await?;
        let pool = pool.clone();
        Ok(Self { pool, fleet })
    }

    /// Acquires so many connections at the same time.
    pub(crate) fn want(&self, count: u32) -> task::JoinHandle<Vec<Lease<M>>> {
        let acquire = |_| {
            let pool = self.pool.clone();
            tokio::spawn(async move { pool.acquire().await.ok() })
        };
        let acquiring: Vec<_> = (0..count).map(acquire).collect();
        tokio::spawn(async move {
            let mut leases = Vec::new();
            for lease in acquiring {
                leases.push(lease.await.unwrap().expect("a connection is lent in time"));
            }
            leases
        })
    }

    pub(crate) async fn hold(&self, count: u32) -> Vec<Lease<M>> {
        self.want(count).await.unwrap()
    }

    pub(crate) fn in_use(&self) -> u32 {
        self.pool.status().in_use.try_into().unwrap()
    }

    /// Waits until the member has swapped another time.
    pub(crate) async fn renews(&self) {
        let swaps = self.fleet.status().swaps;
        let what = || format!("it renews: {:?}", self.fleet.status());
        until(what, || self.fleet.status().swaps > swaps + 1).await;
    }

    /// Waits until the member knows that the cell is learned, or not.
    pub(crate) async fn knows(&self, learned: bool) {
        let what = || format!("learned is {learned}: {:?}", self.fleet.status());
        until(what, || self.fleet.status().learned == learned).await;
    }

    pub(crate) async fn sees_members(&self, count: usize) {
        let what = || format!("{count} members: {:?}", self.fleet.status());
        until(what, || self.fleet.status().members.len() == count).await;
    }
}

/// A firewall forgets the connections of a member: they stay open, and nothing arrives. The member
/// opens new ones.
pub(crate) async fn outlives_forgotten_connections<M: Manager>(seat: &Seat<M>, proxy: &Proxy) {
    seat.renews().await;
    let before = proxy.counts().accepted;

    proxy.forget(Way::Both);

    seat.renews().await;
    assert!(proxy.counts().accepted > before);
}

/// Waits until something holds.
pub(crate) async fn until(what: impl Fn() -> String, holds: impl Fn() -> bool) {
    let reached = timeout(LIMIT, async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(reached.await.is_ok(), "never: {}", what());
}

/// Counts the sessions of the fleet, again and again.
pub(crate) struct Observer {
    most: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    task: task::JoinHandle<()>,
}

impl Observer {
    pub(crate) fn watch<P: Place>(place: &Arc<P>) -> Self {
        let place = Arc::clone(place);
        let (most, stop) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
        let (seen, over) = (Arc::clone(&most), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                seen.fetch_max(place.count().await, Ordering::Relaxed);
                sleep(Duration::from_millis(2)).await;
            }
        });
        Self { most, stop, task }
    }

    /// Returns whether there were so many sessions at once.
    pub(crate) fn has_seen(&self, count: u32) -> bool {
        self.most.load(Ordering::Relaxed) >= count
    }

    /// Stops. There were never more sessions than the capacity.
    pub(crate) async fn finds_no_excess(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        let most = self.most.load(Ordering::Relaxed);
        assert!(most <= CAPACITY, "{most} sessions of {CAPACITY}");
    }
}

/// A member in a runtime of its own, which can be stopped or killed as a process can.
pub(crate) struct Apart {
    pub(crate) id: MemberId,
    orders: Sender<Order>,
    told: Receiver<MemberId>,
    thread: JoinHandle<bool>,
}

#[derive(PartialEq)]
enum Order {
    Stop,
    GoOn,
    Kill,
    End,
}

impl Apart {
    /// Joins, and holds `count` connections.
    pub(crate) fn join<P: Place>(place: &Arc<P>, count: u32) -> Self {
        let place = Arc::clone(place);
        let (orders, ordered) = channel();
        let (tell, told) = channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            let left = runtime.block_on(live(place, count, tell, ordered));
            let is_served = left.is_none();
            // No task runs again. What is left is dropped without a word to the server.
            runtime.shutdown_background();
            is_served
        });
        Self {
            id: told.recv().unwrap(),
            orders,
            told,
            thread,
        }
    }

    /// Stops it, as a signal does: none of its tasks runs.
    pub(crate) fn stop(self) -> Self {
        self.orders.send(Order::Stop).unwrap();
        self.told.recv().unwrap();
        self
    }

    pub(crate) fn go_on(&self) {
        self.orders.send(Order::GoOn).unwrap();
    }

    pub(crate) fn kill(self) {
        self.orders.send(Order::Kill).unwrap();
        self.thread.join().unwrap();
    }

    /// Ends it, and returns whether its pool served a caller after it went on.
    pub(crate) fn end(self) -> bool {
        self.orders.send(Order::End).unwrap();
        self.thread.join().unwrap()
    }
}

type Left<M> = (Seat<M>, Vec<Lease<M>>);

/// Returns what a killed process leaves.
async fn live<P: Place>(
    place: Arc<P>,
    count: u32,
    tell: Sender<MemberId>,
    ordered: Receiver<Order>,
) -> Option<Left<P::Manager>> {
    let seat = place.join().await;
    let leases = seat.hold(count).await;
    tell.send(seat.fleet.id()).unwrap();
    if next(&ordered).await == Order::Kill {
        return Some((seat, leases));
    }
    let swaps = seat.fleet.status().swaps;
    tell.send(seat.fleet.id()).unwrap();
    ordered.recv().unwrap(); // stops the thread until the order to go on
    drop(leases);
    let what = || "it joins again".to_owned();
    until(what, || seat.fleet.status().swaps > swaps).await;
    drop(seat.hold(1).await);
    next(&ordered).await;
    None
}

async fn next(ordered: &Receiver<Order>) -> Order {
    let order = std::cell::OnceCell::new();
    let hears = || ordered.try_recv().is_ok_and(|next| order.set(next).is_ok());
    until(|| "an order".to_owned(), hears).await;
    order.into_inner().unwrap()
}
