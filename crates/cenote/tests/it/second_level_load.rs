//! Two levels under load, while the base is invalidated, shrinks, grows, fails and recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{Lease, Manager, Pool};
use cenote_testkit::{Backend, Call, Gate, Rig};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::two_levels::{UpperPool, assert_conserved, lines, on};

const MILLI: Duration = Duration::from_millis(1);

/// Acquires and returns in ten tasks, 200 times each. Returns how many acquires succeeded.
async fn load<B: Manager + 'static>(pools: &[UpperPool<B>], base: &Pool<B>) -> JoinSet<usize> {
    let mut tasks = JoinSet::new();
    for nth in 0..10_usize {
        let pool = pools[nth % pools.len()].clone();
        let base = base.clone();
        tasks.spawn(async move {
            let mut served = 0;
            for round in 0..200_usize {
                if (round + nth) % 17 == 0 {
                    let direct = base.acquire().await;
                    served += usize::from(direct.is_ok());
                    sleep(MILLI).await;
                    continue;
                }
                let Ok(session) = pool.acquire().await else {
                    sleep(10 * MILLI).await;
                    continue;
                };
                served += 1;
                sleep(MILLI).await;
                if (round + nth) % 7 == 0 {
                    Lease::discard(session);
                }
            }
            served
        });
    }
    tasks
}

async fn meddle<B: Manager + 'static>(base: &Pool<B>, backend: &Arc<Backend>) {
    for round in 0..40 {
        sleep(25 * MILLI).await;
        match round % 4 {
            0 => base.invalidate(),
            1 => base.resize(2).expect("2 is a size"),
            2 => base.resize(4).expect("4 is a size"),
            _ => {
                backend.always(Call::Open, Gate::Fail);
                sleep(20 * MILLI).await;
                backend.heal();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_survive_whatever_happens_to_their_base() {
    let base = Rig::with_max_size(4);
    let (first, one) = on(&base.pool);
    let (second, two) = on(&base.pool);
    let pools = [one.max_size(6).build().unwrap(), two.build().unwrap()];
    let tasks = load(&pools, &base.pool).await;
    meddle(&base.pool, &base.backend).await;

    let served: usize = tasks.join_all().await.into_iter().sum();

    assert!(served > 1_000, "only {served} of 2000");
    assert!(base.backend.peak() <= 4 + 4, "shrunk ones may be closing");
    let [one, two] = pools;
    assert!(two.close_within(600_000 * MILLI).await.is_empty());
    drop(two);
    assert_conserved(&base.pool, one).await;
    assert_eq!((first.alive(), second.alive()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn streams_survive_whatever_happens_to_their_lines() {
    let (backend, base) = lines(4);
    let (first, one) = on(&base);
    let (second, two) = on(&base);
    let pools = [
        one.shared_by(2).build().unwrap(),
        two.shared_by(5).max_size(7).build().unwrap(),
    ];
    let tasks = load(&pools, &base).await;
    meddle(&base, &backend).await;

    let served: usize = tasks.join_all().await.into_iter().sum();

    assert!(served > 1_000, "only {served} of 2000");
    let [one, two] = pools;
    assert!(two.close_within(600_000 * MILLI).await.is_empty());
    drop(two);
    assert_conserved(&base, one).await;
    assert_eq!((first.alive(), second.alive()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_lose_no_slot_either() {
    let (backend, base) = lines(3);
    let (_, streams) = on(&base);
    let streams = streams.shared_by(2).max_size(6).build().unwrap();
    let served = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for nth in 0..8_usize {
        let (streams, served, base) = (streams.clone(), Arc::clone(&served), base.clone());
        tasks.spawn(async move {
            for round in 0..400_usize {
                let mut stream = streams.acquire().await.unwrap();
                served.fetch_add(1, Ordering::Relaxed);
                match (round + nth) % 50 {
                    0 => stream.base().breaks(),
                    10 => Lease::discard(stream),
                    20 => base.invalidate(),
                    _ => {}
                }
            }
        });
    }

    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }

    assert_eq!(served.load(Ordering::Relaxed), 3_200);
    // A task may still have its clone of a broken line, which was replaced.
    assert!(backend.peak() <= 3 + 8, "{} at once", backend.peak());
    assert_conserved(&base, streams).await;
}
