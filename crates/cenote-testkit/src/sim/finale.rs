//! The end of a play. The faults stop and the pool must be back to full service. Then it is closed
//! and must leave nothing behind.

use std::sync::Arc;
use std::time::Duration;

use cenote::AcquireError;
use tokio::time::sleep;

use super::client::{Asking, End, Patience, give_back};
use super::kinds::{SimLease, SimPool};
use super::knobs::resized;
use super::oracle::inspect;
use super::outcome::Acquired;
use super::want::Want;
use super::world::{Sim, now};
use crate::backend::Fault;

/// The number of the first guest. A guest acquires at the end, in a task of its own.
const FIRST_GUEST: usize = 100;

/// Shorter than the time in which a pool must recover.
const LEFT_FOR: Duration = Duration::from_secs(2);

/// Stops the faults and undoes every control of the whole pool.
pub(super) fn heal(sim: &Sim, pool: &SimPool) {
    let forgotten = {
        let mut world = sim.world();
        world.note("scheduler", "the faults stop");
        world.healed = true;
        world.suspended = false;
        world.forgotten()
    };
    leave_few_behind(sim);
    pool.resume();
    pool.resume_upkeep();
    pool.reset();
    if forgotten >= pool.status().max_size {
        // An acquire without a deadline would wait for ever for a resource whose lease was
        // forgotten.
        let to = forgotten + 1;
        if pool.resize(to).is_ok() {
            resized(sim, pool, to);
        }
    }
    inspect(sim, pool);
}

/// Keeps only the acquires without a client that end soon. The others would stand in the way of
/// full service.
fn leave_few_behind(sim: &Sim) {
    for asking in sim.all_orphans() {
        match asking.due() {
            Some(due) if due <= now() + LEFT_FOR => sim.leave_behind(asking),
            _ => drop(asking),
        }
    }
}

pub(super) async fn run(sim: &Arc<Sim>, pool: SimPool) {
    let was_closed = pool.is_closed();
    let leases = if was_closed {
        Vec::new()
    } else {
        full_service(sim, &pool).await
    };
    sim.abandon_orphans();
    for (guest, lease) in leases {
        give_back(sim, guest, lease, End::Dropped).await;
        inspect(sim, &pool);
    }
    if !was_closed {
        leave_on_tray(sim, &pool).await;
    }
    if sim.plan.ends_by_drop {
        sim.note("scheduler", "drops the last handle");
        drop(pool);
        sleep(sim.plan.recovers_within()).await;
    } else {
        close(sim, &pool).await;
    }
    let mut world = sim.world();
    let failures = world.failures;
    let cancelled = world.counted.cancelled;
    world.expect(
        failures.heard <= failures.all && failures.must_be_heard <= failures.heard + cancelled,
        format_args!("open errors: {failures:?}, and {cancelled} gave up"),
    );
    let (alive, forgotten) = (world.alive(), world.forgotten());
    world.expect(
        alive == forgotten,
        format_args!("O8: {alive} are alive, {forgotten} were forgotten"),
    );
    let running = world.opening + world.vetting + world.closing;
    world.expect(
        running == 0,
        format_args!("O8: {running} callbacks still run"),
    );
}

/// O8: every resource that was not forgotten can be acquired within one back-off, and no more than
/// those.
async fn full_service(sim: &Arc<Sim>, pool: &SimPool) -> Vec<(usize, SimLease)> {
    let until = now() + sim.plan.recovers_within();
    let whole = pool.status().max_size - sim.world().forgotten();
    let mut leases = Vec::new();
    while leases.len() < whole && !sim.world().is_broken() {
        let guest = FIRST_GUEST + leases.len();
        let left = until.saturating_duration_since(now());
        match acquire(sim, pool, guest, left).await {
            Ok(lease) => leases.push((guest, lease)),
            // Work that began before the faults stopped may still fail.
            Err(error) if now() < until && error.is_retryable() => {
                sleep(Duration::from_millis(5)).await
            }
            Err(error) => sim.world().broke(format_args!(
                "O8: no full service: {} of {whole}: {error}",
                leases.len()
            )),
        }
    }
    let more = acquire(sim, pool, FIRST_GUEST + whole, Duration::from_millis(5)).await;
    let refused = matches!(
        more,
        Err(AcquireError::TimedOut(_) | AcquireError::Rejected { .. })
    );
    sim.world()
        .expect(refused, "O8: one more than `max_size` was lent");
    if let Ok(lease) = more {
        leases.push((FIRST_GUEST + whole, lease));
    }
    leases
}

/// Lets a resource change hands by its tray, so that the pool ends with a resource on a tray if no
/// oracle looks.
async fn leave_on_tray(sim: &Arc<Sim>, pool: &SimPool) {
    for _ in 0..2 {
        let patience = Patience::For(sim.plan.recovers_within());
        let asking = Asking::new(sim, pool, FIRST_GUEST, Want::Lease, patience);
        match leased(asking.await) {
            Ok(lease) => give_back(sim, FIRST_GUEST, lease, End::Dropped).await,
            Err(error) => sim.world().broke(format_args!("O8: no service: {error}")),
        }
    }
}

async fn acquire(
    sim: &Arc<Sim>,
    pool: &SimPool,
    guest: usize,
    limit: Duration,
) -> Result<SimLease, AcquireError<Fault>> {
    let asking = Asking::new(sim, pool, guest, Want::Lease, Patience::For(limit));
    let acquired = pool.spawn(asking).await.expect("an acquire does not panic");
    inspect(sim, pool);
    leased(acquired)
}

fn leased(acquired: Acquired) -> Result<SimLease, AcquireError<Fault>> {
    acquired.map(|got| got.lease().expect("a lease was asked for"))
}

/// O8: after the close nothing is left but forgotten leases.
async fn close(sim: &Sim, pool: &SimPool) {
    sim.note("scheduler", "closes the pool, and waits");
    let leftover = pool.close_within(sim.plan.recovers_within()).await;
    inspect(sim, pool);
    let status = pool.status();
    let mut world = sim.world();
    let forgotten = world.forgotten();
    world.expect(
        leftover.leases.len() == forgotten && leftover.unfinished == 0,
        format_args!("O8: left after the close: {leftover:?}"),
    );
    let gone = status.closes.total() + status.detached + forgotten as u64;
    world.expect(
        status.opened == gone,
        format_args!(
            "O8: {} opened, {gone} closed, detached or forgotten",
            status.opened
        ),
    );
}
