//! Duels: a pool of one, a waiter with little time, a holder that returns its lease, and a third
//! task that refuses all waiters at the same moment. A slow observer must not delay the waiter.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use cenote::Pool;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::load::{Scene, patience};
use super::pools::{MS, Soaked};
use super::timely::Acquired;

/// As many at a time as the workers can drive.
pub(super) const DUELISTS: usize = 2;

type Acquiring = Pin<Box<dyn Future<Output = Acquired> + Send>>;

pub(super) async fn duelist(scene: Scene, maker: usize) {
    while scene.goes_on() {
        let pool = scene.pools.duel(maker);
        duel(&scene, &pool).await;
        scene.pools.farewell(&pool);
    }
}

async fn duel(scene: &Scene, pool: &Soaked) {
    let Ok(lease) = pool.acquire().await else {
        return;
    };
    let limit = fastrand::u32(0..8) * MS;
    let waiter = tokio::spawn(wait(scene.clone(), pool.clone(), limit));
    let second = tokio::spawn(wait(scene.clone(), pool.clone(), limit / 2));
    yield_now().await;
    let trip = |pool: &Soaked| pool.breaker().trip();
    let refuse = [trip, Pool::close, Pool::suspend][fastrand::usize(..3)];
    let refused = pool.clone();
    let refuser = tokio::spawn(async move {
        pause().await;
        refuse(&refused);
        pause().await;
        refused.breaker().reset();
        refused.resume();
    });
    pause().await;
    if fastrand::bool() {
        drop(lease);
    } else {
        // The receiving thread has no runtime.
        let _ = scene.elsewhere.send(lease);
    }
    let _ = (waiter.await, second.await, refuser.await);
}

async fn pause() {
    match fastrand::u8(0..3) {
        0 => yield_now().await,
        1 => sleep(MS.mul_f64(2.0 * fastrand::f64())).await,
        _ => {}
    }
}

async fn wait(scene: Scene, pool: Soaked, limit: Duration) {
    let own = pool.clone();
    let acquiring: Acquiring = Box::pin(async move { own.acquire_within(limit).await });
    let pools = Arc::clone(&scene.pools);
    let waited = async move { select(acquiring).await };
    let _ = pools.watch.time(&pool, "duels", limit, waited).await;
}

/// Polls an acquire beside a timer that is always over, and lets another task go on with it. So the
/// acquire is polled for no reason and with another waker.
pub(super) async fn select(mut acquiring: Acquiring) -> Acquired {
    for _ in 0..fastrand::u8(0..4) {
        tokio::select! {
            biased;
            acquired = &mut acquiring => return acquired,
            () = sleep(patience() / 8) => {}
        }
    }
    if fastrand::bool() {
        return acquiring.await;
    }
    let other = tokio::spawn(acquiring);
    other.await.expect("an acquire does not panic")
}

/// Polls once and then pauses. If the deadline passes meanwhile, the next poll ends the acquire.
pub(super) async fn doze(scene: &Scene, pool: &Soaked) {
    let limit = patience();
    let own = pool.clone();
    let mut acquiring: Acquiring = Box::pin(async move { own.acquire_within(limit).await });
    let once = std::future::poll_fn(|context| Poll::Ready(acquiring.as_mut().poll(context)));
    if once.await.is_ready() {
        return;
    }
    sleep(patience()).await;
    if fastrand::bool() {
        let _ = scene
            .pools
            .watch
            .time(pool, "dozes", limit, acquiring)
            .await;
    }
}
