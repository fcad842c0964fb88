//! Real pools and real shells by seed, on the paused clock: the server never has more sessions than
//! the capacity, and every pool is served in the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::rig::{Rig, Seat, eventually};

const SEEDS: u64 = 20;
const FAULTS: Duration = Duration::from_secs(60);

#[test]
fn real_pools_keep_to_the_capacity_by_seed() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("CENOTE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CENOTE_SEEDS").map_or(SEEDS, |seeds: u64| seeds.div_ceil(100)),
    };
    for seed in seeds {
        println!("CENOTE_SEED={seed}");
        let runtime = Builder::new_current_thread();
        let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(seed));
    }
}

async fn play(seed: u64) {
    fastrand::seed(seed); // the jitter of the shells
    let mut rng = Rng::with_seed(seed);
    let rig = Rig::new();
    let capacity = rng.u32(6..14);
    let mut seats = Vec::new();
    for _ in 0..rng.usize(2..4) {
        seats.push(Arc::new(rig.join(capacity).await));
    }
    let callers: Vec<_> = (0..rng.usize(4..30))
        .map(|nth| {
            let seat = Arc::clone(&seats[nth % seats.len()]);
            tokio::spawn(call(seat, rng.fork()))
        })
        .collect();
    let mut elapsed = Duration::ZERO;
    while elapsed < FAULTS {
        let pause = Duration::from_millis(rng.u64(1..3000));
        sleep(pause).await;
        elapsed += pause;
        meddle(&rig, &seats[rng.usize(..seats.len())], &mut rng);
        let peak = rig.peak();
        assert!(peak <= capacity, "{peak} sessions of {capacity}");
    }
    for seat in &seats {
        seat.line.is_cut.store(false, Ordering::Relaxed);
        seat.line.fails.store(false, Ordering::Relaxed);
    }
    let what = || format!("seed {seed}: a caller was forgotten");
    eventually(what, || callers.iter().all(|caller| caller.is_finished())).await;
    let peak = rig.peak();
    assert!(peak <= capacity, "{peak} sessions of {capacity}");
}

async fn call(seat: Arc<Seat>, mut rng: Rng) {
    for _ in 0..rng.u8(5..20) {
        let lease = seat.pool.acquire().await.unwrap();
        sleep(Duration::from_millis(rng.u64(..1500))).await;
        drop(lease);
        sleep(Duration::from_millis(rng.u64(..1500))).await;
    }
}

fn meddle(rig: &Rig, seat: &Seat, rng: &mut Rng) {
    let line = &seat.line;
    match rng.u8(..8) {
        0 | 1 => line.is_cut.store(true, Ordering::Relaxed),
        2..5 => {
            line.is_cut.store(false, Ordering::Relaxed);
            line.fails.store(false, Ordering::Relaxed);
        }
        5 => line.fails.store(true, Ordering::Relaxed),
        6 => line.latency.store(rng.u64(..300), Ordering::Relaxed),
        _ => rig.memory.overwrite(None),
    }
}
