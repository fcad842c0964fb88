//! Many faults under load, in a random order.

use std::sync::Arc;
use std::time::Duration;

use cenote_testkit::{Then, Way};
use tokio::time::sleep;

use super::load::Load;
use super::{PATIENCE, STEP, Trial, back_off};

const FAULTS: u32 = 24;

/// Makes a random fault. Faults add up until the proxy is healed.
async fn strike(trial: &Trial, random: &mut fastrand::Rng) {
    let ways = [Way::ToServer, Way::ToClient, Way::Both];
    let ends = [Then::Reset, Then::Close, Then::Stall, Then::Lose];
    let way = ways[random.usize(..ways.len())];
    match random.u32(..8) {
        0 => trial
            .proxy
            .delay(way, Duration::from_millis(random.u64(..60))),
        1 => trial.proxy.stall(way),
        2 => trial.proxy.lose(way),
        3 => trial.proxy.reset(),
        4 => trial.proxy.close(),
        5 => trial.proxy.black_hole(),
        6 => trial.proxy.refuse().await,
        _ => {
            let then = ends[random.usize(..ends.len())];
            trial.proxy.after(way, random.u64(..2000), then);
        }
    }
}

#[tokio::test]
async fn many_random_faults_lose_no_acknowledged_commit_and_leave_no_session() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let trial = Arc::new(Trial::new("storm").await);
    let load = Load::on(&trial, PATIENCE).await;

    for _ in 0..FAULTS {
        strike(&trial, &mut random).await;
        sleep(Duration::from_millis(random.u64(..200))).await;
        if random.bool() {
            trial.proxy.heal().unwrap();
            sleep(Duration::from_millis(random.u64(..200))).await;
        }
    }
    trial.proxy.heal().unwrap();
    // Hanging connections take a clean, an open and a back-off.
    trial
        .first_success(1_000_000, 2 * STEP + back_off(STEP))
        .await;
    load.flows().await;
    let (failed, next) = load.stop().await;

    assert!(failed > 0, "no write failed");
    let acknowledged = trial.acknowledged.lock().unwrap().len();
    println!("{acknowledged} acknowledged, {failed} failed");
    // Sessions whose end was lost are ended by the network only.
    trial.proxy.reset();
    trial.db.pool().invalidate();
    trial.assert_recovered(next, Duration::ZERO).await;
}
