//! Rigs in a state that many tests begin with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::scope::Bound;
use cenote::{Lease, Manager, Pool};
use cenote_testkit::{Call, Gate, GatedManager, GatedPool, Rig};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Acquires `count` resources and holds them.
pub(crate) async fn hold(rig: &Rig, count: usize) -> Vec<Lease<GatedManager>> {
    let mut leases = Vec::new();
    for _ in 0..count {
        leases.push(rig.acquire().await);
    }
    leases
}

/// Returns a rig whose opens take `dial`, with `min_size` resources open.
pub(crate) async fn warmed(min_size: usize, max_size: usize, dial: Duration) -> Rig {
    let rig = Rig::new(|pool| pool.min_size(min_size).max_size(max_size));
    rig.backend.always(Call::Open, Gate::Slow(dial));
    rig.pool.warm().await.expect("the backend opens");
    rig
}

/// Binds a resource to the scope of the caller and pins it.
pub(crate) async fn bind_pinned(pool: &GatedPool) -> Bound<GatedManager> {
    bind_pinned_in(pool).await
}

/// The same for a pool of any kind.
pub(crate) async fn bind_pinned_in<M: Manager>(pool: &Pool<M>) -> Bound<M> {
    let mut bound = pool.bind().await.expect("the pool has a resource");
    assert!(Bound::pin(&mut bound));
    bound
}

/// Five tasks that acquire in a loop and hold for `hold`. The first is greedy: it asks again at
/// once, while the others yield in between. Counts the leases of each.
pub(crate) fn compete(pool: &GatedPool, hold: Duration) -> (JoinSet<()>, Arc<[AtomicUsize; 5]>) {
    let shares: Arc<[AtomicUsize; 5]> = Arc::default();
    let mut tasks = JoinSet::new();
    for nth in 0..5 {
        let (pool, shares) = (pool.clone(), Arc::clone(&shares));
        tasks.spawn(async move {
            loop {
                let lease = pool.acquire().await.expect("every task is served");
                sleep(hold).await;
                shares[nth].fetch_add(1, Ordering::Relaxed);
                drop(lease);
                if nth > 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    (tasks, shares)
}
