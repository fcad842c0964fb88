//! Status under load: counters never go backwards, account for everything, and every snapshot is
//! consistent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote::{Lease, Pool};
use cenote_testkit::{Backend, Call, Gate, GatedManager, GatedPool, Rig, cut};

use crate::support::runtimes::with_workers;
use crate::support::status_rules::{assert_grew, checked_status};

const SECOND: Duration = Duration::from_secs(1);

/// A careless user in a loop.
async fn careless(pool: GatedPool, backend: Arc<Backend>, seed: u64) {
    // A small generator, so that a failing seed can be replayed.
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..150 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let gates = [Gate::Fail, Gate::Panic, Gate::Slow(SECOND / 50)];
        let calls = [Call::Open, Call::Clean, Call::Check, Call::Close];
        if random % 5 == 0 {
            let pick = (random >> 8) as usize;
            backend.once(calls[pick % 4], gates[(pick >> 4) % 3]);
        }
        let limit = Duration::from_millis(1 + (random >> 16) % 40);
        if random % 7 == 0 {
            let _ = cut(1, pool.acquire()).await;
            continue;
        }
        let Ok(mut lease) = pool.acquire_within(limit).await else {
            continue;
        };
        tokio::time::sleep(Duration::from_millis((random >> 24) % 5)).await;
        match (random >> 32) % 8 {
            0 => Lease::discard(lease),
            1 => drop(Lease::detach(lease)),
            2 => lease.broken = true,
            3 | 4 => lease.dirty = true,
            5 => Lease::release(lease).await,
            _ => drop(lease),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn counters_never_go_backwards_and_account_for_everything() {
    for seed in 1..=8 {
        let rig = Rig::new(|pool| {
            let pool = pool
                .max_size(3)
                .max_uses(5)
                .check_after_idle(Duration::ZERO);
            pool.idle_timeout(SECOND / 20).leak_after(SECOND / 500)
        });
        let users: Vec<_> = (0..8)
            .map(|user| {
                let (pool, backend) = (rig.pool.clone(), Arc::clone(&rig.backend));
                tokio::spawn(careless(pool, backend, seed * 100 + user))
            })
            .collect();

        let mut before = checked_status(&rig.pool);
        while users.iter().any(|user| !user.is_finished()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let now = checked_status(&rig.pool);
            assert_grew(&before, &now);
            before = now;
        }
        rig.assert_full_service().await;
        tokio::time::sleep(10 * SECOND).await;

        let status = checked_status(&rig.pool);
        assert_eq!(
            status.acquired,
            status.released + status.detached,
            "seed {seed}"
        );
        assert!(status.opened > 3 && status.timed_out > 0 && status.cancelled > 0);
    }
}

#[test]
fn snapshots_are_consistent_under_real_threads() {
    let runtime = with_workers(2);
    let manager = GatedManager(Arc::new(Backend::default()));
    let pool = Pool::builder(manager)
        .max_size(3)
        .max_uses(10)
        .build()
        .unwrap();
    let done = AtomicBool::new(false);

    std::thread::scope(|threads| {
        threads.spawn(|| {
            runtime.block_on(async {
                let users = [(); 6].map(|()| {
                    let pool = pool.clone();
                    tokio::spawn(async move {
                        for nth in 0..500 {
                            let mut lease = pool.acquire().await.unwrap();
                            lease.dirty = nth % 3 == 0;
                        }
                    })
                });
                for user in users {
                    user.await.unwrap();
                }
            });
            done.store(true, Ordering::Release);
        });
        let mut before = checked_status(&pool);
        while !done.load(Ordering::Acquire) {
            let now = checked_status(&pool);
            assert_grew(&before, &now);
            before = now;
        }
    });

    assert_eq!(pool.status().acquired, 3000);
}

/// One of many users, some of which discard or break their leases.
async fn use_it(pool: GatedPool, user: usize) {
    for turn in 0..150 {
        let limit = Duration::from_millis(if turn % 11 == 0 { 0 } else { 500 });
        let Ok(mut lease) = pool.acquire_within(limit).await else {
            continue;
        };
        tokio::task::yield_now().await;
        match (user + turn) % 8 {
            0 => Lease::discard(lease),
            1 => drop(Lease::detach(lease)),
            2 => lease.broken = true,
            3 => lease.dirty = true,
            4 => Lease::release(lease).await,
            _ => drop(lease),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_snapshot_adds_up_under_load() {
    let backend = Arc::new(Backend::default());
    let pool = Pool::builder(GatedManager(Arc::clone(&backend)))
        .max_size(5)
        .min_size(2)
        .min_idle(1)
        .check_after_idle(Duration::ZERO)
        .build()
        .unwrap();
    let users: Vec<_> = (0..12)
        .map(|user| tokio::spawn(use_it(pool.clone(), user)))
        .collect();

    let mut before = pool.status();
    let mut turn = 0;
    while !users.iter().all(tokio::task::JoinHandle::is_finished) {
        turn += 1;
        match turn % 50 {
            10 => backend.once(Call::Open, Gate::Fail),
            20 => backend.once(Call::Check, Gate::Fail),
            30 => pool.retain(|thing| thing.serial % 3 > 0),
            40 => pool.invalidate(),
            _ => {}
        }
        let status = checked_status(&pool);
        assert_grew(&before, &status);
        before = status;
        tokio::task::yield_now().await;
    }
    for user in users {
        user.await.unwrap();
    }

    let holders = pool.close_within(Duration::from_secs(10)).await.leases;
    let status = checked_status(&pool);
    assert!(holders.is_empty());
    assert_eq!((status.total, status.closing, backend.alive()), (0, 0, 0));
}
