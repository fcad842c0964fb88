//! The load of one round: tasks and threads that use the pools in every way until they are told to
//! stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use cenote::Lease;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

use super::duel::{DUELISTS, doze, duelist, select};
use super::pools::{MAKERS, MS, Pools, Soaked};
use super::resource::Flaky;

const USERS: usize = 48;
const GOVERNORS: usize = 2;
/// The other makers of pools are threads that block.
const FOUNDERS: usize = 2;

type Held = Lease<Flaky>;

/// All tasks and threads of a round.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<(Role, JoinHandle<()>)>,
    threads: Vec<(Role, thread::JoinHandle<()>)>,
}

/// The role of a task or thread.
type Role = &'static str;

/// What each task and thread shares.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) pools: Arc<Pools>,
    stop: Arc<AtomicBool>,
    /// Leads to a thread without a runtime, which drops what it receives.
    pub(super) elsewhere: Sender<Held>,
}

impl Scene {
    pub(super) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

impl Load {
    pub(super) fn start(handle: &Handle, pools: &Arc<Pools>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (elsewhere, held) = channel();
        let scene = Scene {
            pools: Arc::clone(pools),
            stop: Arc::clone(&stop),
            elsewhere,
        };
        let mut tasks = Vec::new();
        tasks.extend((0..USERS).map(|_| ("uses", handle.spawn(user(scene.clone())))));
        tasks.extend((0..GOVERNORS).map(|_| ("governs", handle.spawn(governor(scene.clone())))));
        tasks.extend(
            (0..FOUNDERS).map(|maker| ("founds", handle.spawn(founder(scene.clone(), maker)))),
        );
        let duelists = FOUNDERS..FOUNDERS + DUELISTS;
        tasks.extend(duelists.map(|maker| ("duels", handle.spawn(duelist(scene.clone(), maker)))));
        let mut threads = vec![("drops", thread::spawn(move || drop_all(&held)))];
        threads.extend((FOUNDERS + DUELISTS..MAKERS).map(|maker| {
            let scene = scene.clone();
            ("blocks", thread::spawn(move || block(&scene, maker)))
        }));
        Self {
            stop,
            tasks,
            threads,
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the roles of the tasks and threads that still run. The thread that drops leases runs
    /// as long as any other does.
    pub(super) fn busy(&self) -> Vec<Role> {
        let tasks = self.tasks.iter().filter(|(_, task)| !task.is_finished());
        let threads = self.threads.iter();
        let threads = threads.filter(|(_, thread)| !thread.is_finished());
        let tasks = tasks.map(|(role, _)| *role);
        tasks.chain(threads.map(|(role, _)| *role)).collect()
    }

    /// Returns how many panicked. Called when none is busy.
    pub(super) fn panicked(self, handle: &Handle) -> usize {
        let tasks = self.tasks.into_iter();
        let tasks = tasks.map(|(_, task)| handle.block_on(task));
        let threads = self.threads.into_iter().map(|(_, thread)| thread.join());
        tasks.filter(Result::is_err).count() + threads.filter(Result::is_err).count()
    }
}

fn drop_all(held: &Receiver<Held>) {
    held.iter().for_each(drop);
}

/// Draws a time limit. Most are too short.
pub(super) fn patience() -> Duration {
    let micros = [0, 50, 300, 2_000, 20_000];
    Duration::from_micros(micros[fastrand::usize(..micros.len())])
}

async fn hold() {
    match fastrand::u8(0..4) {
        0 => sleep(MS.mul_f64(fastrand::f64())).await,
        yields => {
            for _ in 0..yields {
                yield_now().await;
            }
        }
    }
}

async fn user(scene: Scene) {
    while scene.goes_on() {
        use_once(&scene).await;
        yield_now().await;
    }
}

/// Does one thing that a user can do. Failures here come from the backend on purpose, and the pool
/// deals with them.
async fn use_once(scene: &Scene) {
    let pool = scene.pools.any();
    let what = fastrand::u8(0..26);
    match what {
        0 => drop(timeout(patience(), pool.acquire()).await),
        1 => return abort(pool).await,
        2 => {
            let _ = pool.try_with(async |thing| thing.use_it()).await;
        }
        3 => drop(pool.try_acquire()),
        13 => drop(timeout(patience(), pool.try_acquire_or_open()).await),
        14 => {
            let quiet = pool.wait_for(|status| status.waiting == 0);
            let _ = timeout(patience(), quiet).await;
        }
        4 => {
            let _ = (pool.leases(), pool.health(), pool.status());
            pool.retain(|_| fastrand::u8(..) > 100);
        }
        11 => return doze(scene, pool).await,
        _ => {}
    }
    let limit = patience();
    let watch = &scene.pools.watch;
    let acquired = if what == 12 {
        let own = pool.clone();
        let acquiring = Box::pin(async move { own.acquire_within(limit).await });
        watch.time(pool, "selects", limit, select(acquiring)).await
    } else {
        let acquiring = pool.acquire_within(limit);
        watch.time(pool, "uses", limit, acquiring).await
    };
    let Some(Ok(mut lease)) = acquired else {
        return;
    };
    if lease.use_it().is_err() {
        return Lease::discard(lease);
    }
    hold().await;
    match what {
        5 => Lease::discard(lease),
        6 => drop(Lease::detach(lease)),
        7 => Lease::release(lease).await,
        8 => drop(timeout(patience(), Lease::release(lease)).await),
        9 => drop(scene.elsewhere.send(lease)),
        10 => {
            Lease::label(&lease, "nested".to_owned());
            drop(pool.acquire_within(patience()).await);
        }
        _ => drop(lease),
    }
}

/// Starts a task and aborts it wherever it happens to be.
async fn abort(pool: &Soaked) {
    let pool = pool.clone();
    let task = tokio::spawn(async move {
        if let Ok(mut lease) = pool.acquire().await {
            let _ = lease.use_it();
            hold().await;
            Lease::release(lease).await;
        }
    });
    hold().await;
    task.abort();
    let _ = task.await;
}

/// Controls whole pools. The end of the round undoes a pool that is left suspended or inactive.
async fn governor(scene: Scene) {
    while scene.goes_on() {
        let pool = scene.pools.any();
        match fastrand::u8(0..8) {
            0 => {
                // Refused if `min_size` and `min_idle` do not fit.
                let _ = pool.resize(fastrand::usize(1..20));
            }
            1 => pool.invalidate(),
            2 => pool.invalidate_over(4 * MS),
            3 => {
                pool.suspend();
                hold().await;
                pool.resume();
            }
            4 => {
                pool.pause_upkeep();
                hold().await;
                pool.resume_upkeep();
            }
            5 => {
                pool.breaker().trip();
                hold().await;
                pool.breaker().probe();
            }
            6 => {
                pool.breaker().trip();
                hold().await;
                pool.breaker().reset();
            }
            _ => pool.breaker().reset(),
        }
        sleep(MS.mul_f64(2.0 * fastrand::f64())).await;
    }
}

/// Builds pools, uses them, and gives up their handles in every way.
async fn founder(scene: Scene, maker: usize) {
    while scene.goes_on() {
        let pool = scene.pools.another(maker);
        let weak = pool.downgrade();
        if fastrand::bool() {
            let _ = pool.warm().await;
        }
        let leases = [
            pool.acquire().await.ok(),
            pool.acquire_within(patience()).await.ok(),
        ];
        let waiting = pool.clone();
        let waiter = tokio::spawn(async move { waiting.acquire_within(MS).await.map(drop) });
        yield_now().await;
        scene.pools.farewell(&pool);
        match fastrand::u8(0..5) {
            0 => pool.close(),
            1 => drop(pool.close_within(MS).await),
            2 => {
                let send = |lease| scene.elsewhere.send(lease);
                let _ = leases.into_iter().flatten().try_for_each(send);
                waiter.abort();
                continue;
            }
            3 => {
                drop(pool);
                drop(leases);
                // The waiter has the last handle. It ends by its time limit, or by the lease that
                // came back.
                continue;
            }
            _ => {}
        }
        drop(leases);
        let _ = waiter.await;
        drop(pool);
        // Work that still runs for the pool keeps no handle.
        assert!(weak.upgrade().is_none(), "a pool without handles lives on");
    }
}

/// A thread without a runtime. Everything that must be awaited for it runs elsewhere.
fn block(scene: &Scene, maker: usize) {
    while scene.goes_on() {
        let own = fastrand::u8(..) < 30;
        let pool = if own {
            scene.pools.another(maker)
        } else {
            scene.pools.any().clone()
        };
        let limit = patience();
        let blocked = || pool.acquire_blocking_within(limit);
        let acquired = scene.pools.watch.time_blocking(&pool, limit, blocked);
        if let Ok(mut lease) = acquired {
            let _ = lease.use_it();
            thread::yield_now();
        }
        if own {
            scene.pools.farewell(&pool);
        }
    }
}
