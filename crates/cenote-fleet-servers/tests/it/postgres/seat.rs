//! A member on a real server, in this runtime or in one that can be stopped.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote_fleet::{Fleet, JoinError};
use cenote_postgres::{Lease, Pool};
use tokio::task;
use tokio::time::{sleep, timeout};
use tokio_postgres::Config;

/// What must happen happens long before this, also on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Short, because some tests wait for its end.
const TTL: Duration = Duration::from_secs(4);

pub(super) struct Seat {
    pub(super) pool: Pool,
    pub(super) fleet: Fleet,
}

impl Seat {
    /// Joins, and tries again if the server was too slow.
    pub(super) async fn join(url: &str, capacity: u32) -> Self {
        let joined = timeout(LIMIT, async {
            loop {
                match Self::try_join(url, capacity).await {
                    Ok(seat) => break seat,
                    Err(error) => assert!(error.is_retryable(), "{error:?}"),
                }
            }
        });
        joined.await.unwrap()
    }

    pub(super) async fn try_join(url: &str, capacity: u32) -> Result<Self, JoinError> {
        let mut options: Config = url.parse().unwrap();
        let joining = Fleet::postgres(&options, "orders").unwrap();
        options.application_name(joining.tag("api"));
        let pool = Pool::with_options(options)
            .acquire_timeout(LIMIT)
            .open_timeout(LIMIT);
        let pool = pool.build().unwrap();
        let joining = joining.capacity(capacity).overhead(1).ttl(TTL);
        let fleet = joining.join(&pool).await?;
        Ok(Self { pool, fleet })
    }

    /// Acquires so many connections at the same time.
    pub(super) fn want(&self, count: usize) -> task::JoinHandle<Vec<Lease>> {
        let acquire = |_| {
            let pool = self.pool.clone();
            tokio::spawn(async move { pool.acquire().await.unwrap() })
        };
        let acquiring: Vec<_> = (0..count).map(acquire).collect();
        tokio::spawn(async move {
            let mut leases = Vec::new();
            for lease in acquiring {
                leases.push(lease.await.unwrap());
            }
            leases
        })
    }

    pub(super) async fn hold(&self, count: usize) -> Vec<Lease> {
        self.want(count).await.unwrap()
    }

    pub(super) fn in_use(&self) -> usize {
        self.pool.status().in_use
    }

    pub(super) fn share(&self) -> u32 {
        self.fleet.status().share
    }
}

/// Waits until something holds.
pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    let reached = timeout(LIMIT, async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(reached.await.is_ok(), "never: {what}");
}

/// A member whose whole runtime can be stopped, as a signal stops a process: its thread sleeps, and
/// none of its tasks runs.
pub(super) struct Stopped {
    orders: Sender<()>,
    stopped: Receiver<()>,
    thread: JoinHandle<bool>,
}

impl Stopped {
    /// Joins, and holds `count` connections.
    pub(super) fn join(url: &str, capacity: u32, count: usize) -> Self {
        let url = url.to_owned();
        let (orders, ordered) = channel();
        let (tell, stopped) = channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async {
                let seat = Seat::join(&url, capacity).await;
                let leases = seat.hold(count).await;
                tell.send(()).unwrap();
                until("the order to stop", || ordered.try_recv().is_ok()).await;
                tell.send(()).unwrap();
                let swaps = seat.fleet.status().swaps;
                ordered.recv().unwrap(); // stops the thread until the order to go on
                drop(leases);
                until("it joins again", || seat.fleet.status().swaps > swaps).await;
                let lease = seat.pool.acquire().await.unwrap();
                let is_served = lease.query_one("select 1", &[]).await.is_ok();
                until("the order to end", || ordered.try_recv().is_ok()).await;
                is_served
            })
        });
        stopped.recv().unwrap();
        Self {
            orders,
            stopped,
            thread,
        }
    }

    pub(super) fn stop(&self) {
        self.orders.send(()).unwrap();
        self.stopped.recv().unwrap();
    }

    pub(super) fn go_on(&self) {
        self.orders.send(()).unwrap();
    }

    /// Ends it, and returns whether the pool served a caller after it went on.
    pub(super) fn end(self) -> bool {
        self.orders.send(()).unwrap();
        self.thread.join().unwrap()
    }
}
