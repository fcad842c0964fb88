//! Every callback of both levels, crossed with every way in which it can fail and with the caller
//! dropped at every await: no slot is lost on either level.

use std::sync::Arc;
use std::time::Duration;

use cenote::{Lease, Manager, Pool};
use cenote_testkit::clock::settle;
use cenote_testkit::{Backend, Call, Gate, Rig, cut};
use tokio::time::timeout;

use crate::support::two_levels::{UpperPool, assert_conserved, lines, on};

const CALLS: [Call; 6] = [
    Call::Open,
    Call::Check,
    Call::IsBroken,
    Call::NeedsCleaning,
    Call::Clean,
    Call::Close,
];

const GATES: [Gate; 4] = [
    Gate::Fail,
    Gate::Slow(Duration::from_millis(300)),
    Gate::Hang,
    Gate::Panic,
];

/// Where a caller is dropped: after so many polls, or after so many milliseconds.
const CUTS: [(usize, u64); 6] = [
    (1, 600_000),
    (2, 600_000),
    (3, 600_000),
    (usize::MAX, 150),
    (usize::MAX, 1_500),
    (usize::MAX, 600_000),
];

#[tokio::test(start_paused = true)]
async fn no_slot_is_lost_on_leases_of_their_own() {
    for of_base in [true, false] {
        for_each_case(async |call, gate, caller| {
            let base = Rig::with_max_size(2);
            let (backend, pool) = on(&base.pool);
            let pool = pool.max_size(3).check_on_return(true).build().unwrap();
            let gated = if of_base { &base.backend } else { &backend };
            play(&base.pool, &pool, gated, (call, gate), caller).await;
            base.backend.heal();
            backend.heal();
            assert_conserved(&base.pool, pool).await;
            assert_eq!(backend.alive(), 0, "{call:?} {gate:?} {caller:?}");
            base.assert_full_service().await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_slot_is_lost_on_shared_leases() {
    for of_base in [true, false] {
        for_each_case(async |call, gate, caller| {
            let (lower, base) = lines(2);
            let (backend, pool) = on(&base);
            let pool = pool.shared_by(2).max_size(3).check_on_return(true);
            let pool = pool.build().unwrap();
            let gated = if of_base { &lower } else { &backend };
            play(&base, &pool, gated, (call, gate), caller).await;
            lower.heal();
            backend.heal();
            assert_conserved(&base, pool).await;
            assert_eq!(backend.alive(), 0, "{call:?} {gate:?} {caller:?}");
        })
        .await;
    }
}

async fn for_each_case(mut play: impl AsyncFnMut(Call, Gate, (usize, u64))) {
    for call in CALLS {
        for gate in GATES {
            for caller in CUTS {
                play(call, gate, caller).await;
            }
        }
    }
}

/// Uses the pool while one call of a backend does not pass, and two callers are dropped.
async fn play<B: Manager + 'static>(
    base: &Pool<B>,
    pool: &UpperPool<B>,
    backend: &Arc<Backend>,
    (call, gate): (Call, Gate),
    (polls, millis): (usize, u64),
) {
    let limit = Duration::from_millis(millis);
    if call != Call::Open {
        let _ = pool.acquire().await;
    }
    backend.once(call, gate);
    for _ in 0..2 {
        let held = cut(polls, timeout(limit, pool.acquire())).await;
        if let Some(Ok(Ok(mut session))) = held {
            session.dirty = true;
            cut(polls, timeout(limit, Lease::release(session))).await;
        }
        if let Some(Ok(Ok(session))) = cut(polls, timeout(limit, pool.acquire())).await {
            Lease::discard(session);
        }
        drop(cut(polls, timeout(limit, base.acquire())).await);
    }
    settle().await;
}
