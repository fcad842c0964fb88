//! One fault after another under load, in an order that a seed decides.

use std::sync::Arc;
use std::time::Duration;

use cenote_testkit::{Then, Way};
use tokio::time::sleep;

use super::load::Load;
use super::{PATIENCE, STEP, Trial, back_off};

const FAULTS: u32 = 24;

/// One fault on the proxy. Faults add up until it is healed.
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
async fn a_storm_of_faults_loses_no_acknowledged_commit_and_leaves_nothing_behind() {
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
    // Those that hang are given up: a clean, an open, a back-off.
    trial
        .first_success(1_000_000, 2 * STEP + back_off(STEP))
        .await;
    load.flows().await;
    let (failed, next) = load.stop().await;

    assert!(failed > 0, "it was no test");
    let acknowledged = trial.acknowledged.lock().unwrap().len();
    println!("{acknowledged} acknowledged, {failed} failed");
    // What was lost on its way leaves sessions that only the network can end.
    trial.proxy.reset();
    trial.db.pool().invalidate();
    trial.assert_recovered(next, Duration::ZERO).await;
}
