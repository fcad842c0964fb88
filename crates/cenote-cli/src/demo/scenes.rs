//! The six scenes. Each is explained in one sentence while it happens.

use std::sync::Arc;
use std::time::Duration;

use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote::{Lease, Leftover, Status};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::shop::Shop;
use super::stage::{SceneResult, Stage};
use crate::clock::now;
use crate::failure::Failure;
use crate::out::{short_time, thousands};

/// Things that must happen have this long on a machine under heavy load.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Returns the time after which a lease counts as leaked: well within the scene about it.
pub(super) fn leak_after(lasts: Duration) -> Duration {
    (lasts * 6 / 100).max(Duration::from_millis(50))
}

/// Lets the breaker try again several times within the scene about it.
pub(super) fn breaker(strategy: ConsecutiveFailures, lasts: Duration) -> ConsecutiveFailures {
    strategy.recover_after(lasts * 2 / 100, lasts * 4 / 100)
}

/// Plays all scenes but the drain, which also follows an interrupt.
pub(super) async fn play<S: Shop>(stage: &Stage<S>) -> Result<Vec<SceneResult>, Failure> {
    Ok(vec![
        warm_up(stage).await?,
        spike(stage).await,
        leak(stage).await?,
        outage(stage).await?,
        nested(stage).await?,
    ])
}

async fn warm_up<S: Shop>(stage: &Stage<S>) -> Result<SceneResult, Failure> {
    let name = "warm-up";
    stage.announce(
        name,
        "connections are opened before the first customer comes",
    );
    let started = now();
    let mut held = Vec::new();
    for _ in 0..stage.pool.status().max_size {
        held.push(stage.pool.acquire().await?);
    }
    let (opened, took) = (held.len(), short_time(started.elapsed()));
    drop(held);
    stage.crowd.let_in(2);
    sleep(stage.part(10)).await;
    Ok(stage.result(
        name,
        Ok(format!("{opened} connections were open after {took}")),
    ))
}

async fn spike<S: Shop>(stage: &Stage<S>) -> SceneResult {
    let (name, tasks) = ("spike", stage.tasks);
    let size = stage.pool.status().max_size;
    let sentence = format!(
        "{tasks} customers share {size} connections, first come, first served{}",
        S::REMARK
    );
    stage.announce(name, &sentence);
    let before = stage.pool.status();
    stage.crowd.let_in(tasks);
    sleep(stage.part(25)).await;
    let after = stage.pool.status();
    let count = |read: fn(&Status) -> u64| read(&after) - read(&before);
    let (served, waited) = (count(|it| it.acquired), count(|it| it.waited));
    let wait = after.wait_time.saturating_sub(before.wait_time);
    let mean = short_time(wait.div_f64(waited.max(1) as f64));
    let served = thousands(served);
    let shown = format!("{served} customers were served, after a wait of {mean} on average");
    stage.result(name, Ok(shown))
}

async fn leak<S: Shop>(stage: &Stage<S>) -> Result<SceneResult, Failure> {
    let name = "leak";
    stage.announce(
        name,
        "a handler takes a connection and forgets it; the pool finds the line",
    );
    let before = stage.pool.status().leaked;
    let forgotten = stage.pool.acquire().await?;
    Lease::label(&forgotten, "leaky handler");
    let id = Lease::id(&forgotten);
    let found = eventually(|| stage.pool.status().leaked > before).await;
    let holder = stage
        .pool
        .leases()
        .into_iter()
        .find(|holder| holder.id == id);
    let shown = match holder.filter(|_| found) {
        Some(holder) => Ok(format!("found: {holder}")),
        None => Err("the leak was not found"),
    };
    sleep(stage.part(7)).await;
    Ok(stage.result(name, shown))
}

async fn outage<S: Shop>(stage: &Stage<S>) -> Result<SceneResult, Failure> {
    let name = "outage";
    let [gone, back] = S::OUTAGE;
    let sentence = format!("{gone}; the breaker trips, and callers fail at once");
    stage.announce(name, &sentence);
    let refused = |status: &Status| status.refusals.total() + status.open_failed;
    let before = refused(&stage.pool.status());
    stage.pool.manager().cut();
    stage.pool.invalidate();
    let tripped = eventually(|| stage.pool.breaker().state() != BreakerState::Active).await;
    stage.live.look();
    sleep(stage.part(12)).await;
    let failed = thousands(refused(&stage.pool.status()) - before);
    stage.pool.manager().restore();
    let sentence = format!("{back}; the pool proves it by a probe of its own");
    stage.announce(name, &sentence);
    let started = now();
    let back = eventually(|| stage.pool.breaker().state() == BreakerState::Active).await;
    let took = short_time(started.elapsed());
    sleep(stage.part(8)).await;
    let shown = match (tripped, back) {
        (true, true) => Ok(format!(
            "{failed} callers were refused at once, and the pool lent again {took} after the return"
        )),
        (false, _) => Err("the breaker did not trip"),
        (true, false) => Err("the breaker did not recover"),
    };
    Ok(stage.result(name, shown))
}

/// As many tasks as there are connections take one each, and then ask for another.
async fn nested<S: Shop>(stage: &Stage<S>) -> Result<SceneResult, Failure> {
    let name = "nested";
    stage.announce(
        name,
        "every connection is held by a task that waits for one more; the pool says so",
    );
    stage.crowd.let_in(0);
    let size = stage.pool.status().max_size;
    let all_hold = Arc::new(Barrier::new(size));
    let wait = stage.part(8).max(Duration::from_millis(100));
    let mut tasks = JoinSet::new();
    for _ in 0..size {
        let (pool, all_hold) = (stage.pool.clone(), Arc::clone(&all_hold));
        tasks.spawn(async move {
            let outer = pool.acquire_within(LIMIT).await?;
            all_hold.wait().await;
            let inner = pool.acquire_within(wait).await;
            drop(outer);
            Ok::<_, Failure>(inner.err().map(|error| error.to_string()))
        });
    }
    let mut told = None;
    while let Some(ended) = tasks.join_next().await {
        told = told.or(ended??);
    }
    stage.crowd.let_in(stage.tasks);
    sleep(stage.part(7)).await;
    Ok(stage.result(name, told.ok_or("the deadlock was not seen")))
}

/// Closes the pool under load, and waits for the leases that are out.
pub(super) async fn drain<S: Shop>(stage: &Stage<S>, limit: Duration) -> (SceneResult, Leftover) {
    let name = "drain";
    stage.announce(
        name,
        "no new customer is let in, and leases that are out come back",
    );
    let out = stage.pool.status().in_use;
    let started = now();
    let leftover = stage.pool.close_within(limit).await;
    let took = short_time(started.elapsed());
    let shown = format!("{out} leases came back, and all was closed after {took}");
    (stage.result(name, Ok(shown)), leftover)
}

async fn eventually(holds: impl Fn() -> bool) -> bool {
    let looking = async {
        while !holds() {
            sleep(LOOK_EVERY).await;
        }
    };
    timeout(LIMIT, looking).await.is_ok()
}
