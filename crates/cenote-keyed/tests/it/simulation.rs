//! Whole keyed pools by seed, on a virtual clock: many keys, faults, and an oracle.
//!
//! `CENOTE_SEED=S` plays one seed again, and `CENOTE_SEEDS=N` plays the first `N`.

use std::sync::Arc;
use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate};
use fastrand::Rng;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::rig::{Key, Rig};

const SEEDS: u64 = 100;

/// The faults stop after this long.
const FAULTS: Duration = Duration::from_secs(20);

/// After that, all callers are served within this time. It is longer than every limit of a
/// callback, several times over.
const FINALE: Duration = Duration::from_secs(120);

#[test]
fn no_cap_is_broken_and_no_caller_is_forgotten_by_seed() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("CENOTE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CENOTE_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        println!("CENOTE_SEED={seed}");
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(seed));
    }
}

async fn play(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let (total, keys) = (rng.usize(1..6), rng.u32(1..7));
    let max_size = rng.usize(1..4);
    let check_after_idle = [None, Some(Duration::ZERO), Some(Duration::from_secs(1))];
    let check_after_idle = check_after_idle[rng.usize(..3)];
    let rig = Arc::new(Rig::with(|pools| {
        let pools = pools
            .total(total)
            .max_size(max_size)
            .open_timeout(seconds(5));
        let pools = pools
            .check_after_idle(check_after_idle)
            .idle_timeout(seconds(7));
        pools.pool(move |_, pool| pool.seed(seed))
    }));

    let callers: Vec<_> = (0..rng.u64(2..12))
        .map(|_| tokio::spawn(call(Arc::clone(&rig), keys, rng.fork())))
        .collect();
    let mut elapsed = Duration::ZERO;
    while elapsed < FAULTS {
        let pause = Duration::from_millis(rng.u64(1..1500));
        sleep(pause).await;
        elapsed += pause;
        meddle(&rig, rng.u32(..keys), &mut rng);
        let status = rig.pools.status();
        assert!(rig.alive() <= total && status.held <= total, "{status:?}");
    }
    rig.heal();

    for caller in callers {
        let ended = timeout(FINALE, caller).await;
        let ended = ended.unwrap_or_else(|_| panic!("a caller was forgotten: {:?}", state(&rig)));
        ended.unwrap();
    }
    sleep(seconds(10)).await;
    settle().await;
    let status = rig.pools.status();
    assert_eq!((status.waiting, status.leaving), (0, 0), "{status:?}");
    rig.assert_full_service().await;
}

fn state(rig: &Rig) -> impl std::fmt::Debug {
    (rig.pools.status(), rig.pools.statuses())
}

/// One caller: some acquires of random keys, and one that waits for ever.
async fn call(rig: Arc<Rig>, keys: Key, mut rng: Rng) {
    for _ in 0..rng.u8(3..12) {
        let patience = Duration::from_millis(rng.u64(..4000));
        let acquired = rig.pools.acquire_within(&rng.u32(..keys), patience).await;
        use_up(acquired.ok(), &mut rng).await;
        sleep(Duration::from_millis(rng.u64(..1000))).await;
    }
    // A failed open is told to the caller, which tries again.
    let key = rng.u32(..keys);
    loop {
        match rig.pools.acquire_within(&key, None).await {
            Ok(lease) => break drop(lease),
            Err(_) => sleep(seconds(1)).await,
        }
    }
}

async fn use_up(lease: Option<crate::rig::GatedLease>, rng: &mut Rng) {
    let Some(mut lease) = lease else { return };
    lease.dirty = rng.u8(..3) == 0;
    lease.broken = rng.u8(..10) == 0;
    sleep(Duration::from_millis(rng.u64(..2000))).await;
    match rng.u8(..8) {
        0 => Lease::release(lease).await,
        1 => drop(Lease::detach(lease)),
        _ => drop(lease),
    }
}

fn meddle(rig: &Rig, key: Key, rng: &mut Rng) {
    let calls = [
        Call::Open,
        Call::Check,
        Call::Clean,
        Call::Close,
        Call::IsBroken,
    ];
    let gates = [
        Gate::Pass,
        Gate::Fail,
        Gate::Slow(Duration::from_millis(rng.u64(1..3000))),
        Gate::Hang,
        Gate::Panic,
    ];
    let (call, gate) = (calls[rng.usize(..5)], gates[rng.usize(..5)]);
    match rng.u8(..10) {
        0..6 => rig.backend(key).once(call, gate),
        6 => rig.backend(key).always(call, gate),
        7 => rig.backend(key).heal(),
        8 => rig.pools.invalidate(),
        _ => drop(rig.pools.try_acquire(&key)),
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
