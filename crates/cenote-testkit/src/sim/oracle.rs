//! The oracles that look at the pool between two steps, and when no task can run.

use std::time::Duration;

use cenote::Status;
use cenote::breaker::BreakerState;
use cenote::config::OnOpenError;

use super::kinds::SimPool;
use super::plan::Lie;
use super::wakes;
use super::world::{Counted, Sim, World, now};
use crate::status::counters;

/// The granularity of the runtime's timers.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Checks the pool between two steps, if the plan says so.
pub(super) fn check(sim: &Sim, pool: &SimPool) {
    sim.world().tick += 1;
    wakes::check(sim, pool);
    if sim.looks() {
        inspect(sim, pool);
    }
}

pub(super) fn inspect(sim: &Sim, pool: &SimPool) {
    let status = pool.status();
    let idle = pool.is_closed() || pool.breaker_state() == BreakerState::Inactive;
    let mut world = sim.world();
    let world = &mut *world;
    if idle && status.waiting > 0 {
        world.broke("O6: an acquire waits for a pool that is closed or inactive");
    }
    check_books(world, &status);
    check_cap(sim, world, &status);
    check_probes(sim, world);
    world.seen = Some(status);
}

/// O5: the books.
fn check_books(world: &mut World, status: &Status) {
    let living = status.idle + status.in_use + status.cleaning + status.checking;
    world.expect(
        status.total == living + status.opening,
        "O5: the status does not add up",
    );
    let gone = status.closes.total() + status.detached;
    world.expect(
        status.opened == gone + living as u64,
        format_args!("O5: {} opened, {gone} gone, {living} here", status.opened),
    );
    world.expect(
        status.opened == world.opened,
        "O5: the backend counts other opens than the pool",
    );
    let counted = Counted {
        acquired: status.acquired,
        waited: status.waited,
        // `check_ends` judges these two.
        timed_out: world.counted.timed_out,
        cancelled: world.counted.cancelled,
        cancelled_late: world.counted.cancelled_late,
        released: status.released,
        discarded: status.discarded,
        detached: status.detached,
    };
    let own = world.counted;
    check_ends(world, status);
    world.expect(
        counted == own,
        format_args!("O5: the pool counts {counted:?}, the clients {own:?}"),
    );
    let told = world.told;
    world.expect(
        told == (own.acquired, own.released),
        format_args!("O5: the observer was told of {told:?} acquires and returns"),
    );
    let (leases, queued) = (world.leases.len(), world.queue.len());
    let served = queued.checked_sub(status.waiting);
    let unclaimed = status.in_use.checked_sub(leases);
    world.expect(
        served
            .zip(unclaimed)
            .is_some_and(|(served, unclaimed)| unclaimed <= served),
        format_args!(
            "O5: {} in use and {} waiting, but {leases} leases and {queued} acquires",
            status.in_use, status.waiting
        ),
    );
    let permits = world.permits;
    let unread = served.unwrap_or_default();
    world.expect(
        (permits..=permits + unread).contains(&status.reserved),
        format_args!(
            "O5: {} reserved, but {permits} permits and {unread} acquires that were served",
            status.reserved
        ),
    );
    let before = world.seen.take();
    let backwards = before.is_some_and(|before| goes_backwards(&before, status));
    world.expect(!backwards, "O5: a counter went backwards");
}

/// A deadline also passes for an acquire that is not polled. The pool counts a timeout then that
/// its client does not know yet, or never will.
fn check_ends(world: &mut World, status: &Status) {
    let own = world.counted;
    let asks = world
        .queue
        .iter()
        .filter_map(|number| world.asks.get(number));
    let overdue = asks.filter(|ask| ask.due.is_some_and(|due| due <= now()));
    let unknown = overdue.count() as u64;
    let late = own.cancelled_late;
    let timed_out = own.timed_out..=own.timed_out + late + unknown;
    let cancelled = own.cancelled - late..=own.cancelled;
    let ended = own.timed_out + own.cancelled;
    let holds = timed_out.contains(&status.timed_out)
        && cancelled.contains(&status.cancelled)
        && (ended..=ended + unknown).contains(&(status.timed_out + status.cancelled));
    world.expect(
        holds,
        format_args!(
            "O5: the pool counts {} timed out and {} cancelled, the clients {own:?}",
            status.timed_out, status.cancelled
        ),
    );
}

fn goes_backwards(before: &Status, after: &Status) -> bool {
    let mut pairs = counters(before).into_iter().zip(counters(after));
    pairs.any(|(before, after)| after < before)
}

/// O1: the cap.
fn check_cap(sim: &Sim, world: &mut World, status: &Status) {
    let occupied = status.total + status.closing;
    let (alive, opening) = (world.alive(), world.opening);
    world.expect(
        alive + opening <= occupied,
        format_args!("O1: {alive} alive and {opening} opening in {occupied} slots"),
    );
    world.expect(
        status.max_size == world.max_size,
        "O1: `max_size` is not what it was set to",
    );
    let cap = world.cap - usize::from(sim.tells(Lie::SmallerCap));
    world.expect(
        occupied <= cap,
        format_args!("O1: {occupied} slots are taken, of {cap}"),
    );
    world.cap = world.max_size.max(world.cap.min(occupied));
}

/// O6: an acquire that began after the breaker began to recover holds a probe.
fn check_probes(sim: &Sim, world: &mut World) {
    let Some(since) = world.recovering_since else {
        return;
    };
    let probes = world
        .leases
        .iter()
        .filter(|held| held.began > since)
        .count();
    world.expect(
        probes <= sim.plan.config.probes,
        format_args!("O6: {probes} probes are out"),
    );
}

/// O7: no task can run, and the clock is about to jump.
pub(super) fn check_rest(sim: &Sim, pool: &SimPool) {
    wakes::check(sim, pool);
    wakes::check_rest(sim, pool);
    if !sim.world().turns.are_over() || !sim.looks() {
        return;
    }
    inspect(sim, pool);
    let status = pool.status();
    let allowance = match pool.breaker_state() {
        _ if pool.is_closed() => 0,
        BreakerState::Active => usize::MAX,
        // More may be out, if they were lent before. The pool may still need a proof.
        BreakerState::Recovering if sim.plan.config.self_probe => 0,
        BreakerState::Recovering => sim.plan.config.probes.saturating_sub(status.in_use),
        _ => 0,
    };
    let promised = status.in_use + status.reserved;
    let allowance = match status.reserved {
        0 => allowance,
        _ => allowance.min(status.max_size.saturating_sub(promised)),
    };
    check_proof(sim, pool, &status);
    let mut world = sim.world();
    let world = &mut *world;
    check_owed(sim, world, &status);
    let dozing = world
        .queue
        .iter()
        .filter(|ask| world.asks[ask].dozing)
        .count();
    world.expect(
        world.queue.len() <= status.waiting + dozing,
        "O7: an acquire was served or refused, and was not woken",
    );
    let unclaimed = status.in_use.saturating_sub(world.leases.len());
    world.expect(
        unclaimed <= wakes::may_be_unclaimed(world),
        "O4: a grant that was not claimed in time was not taken back",
    );
    if !world.suspended {
        check_no_idle_hands(sim, world, &status, status.waiting.min(allowance));
    }
    check_deadlines(world);
}

/// O7: a pool that has to prove its backend alive does so, or an open has just failed, or all
/// resources are out.
fn check_proof(sim: &Sim, pool: &SimPool, status: &Status) {
    if pool.is_closed() || !sim.plan.config.self_probe {
        return;
    }
    let mut world = sim.world();
    let is_proven = world
        .recovering_since
        .is_none_or(|since| world.passed_check_at > since);
    let coming = status.opening + status.checking + status.cleaning;
    let is_full = status.total + status.closing >= status.max_size && status.idle == 0;
    let holds = is_proven || coming > 0 || is_full || world.failing;
    world.expect(
        holds,
        "O7: the backend has to be proven alive, and nothing is done",
    );
}

/// A task that took a piece of work runs a callback, or pauses between two tries of an open.
fn check_owed(sim: &Sim, world: &mut World, status: &Status) {
    let pauses = sim.plan.config.on_open_error == OnOpenError::Retry;
    let owed = [
        ("opening", status.opening, world.opening),
        (
            "checked or cleaned",
            status.checking + status.cleaning,
            world.vetting,
        ),
        ("closing", status.closing, world.closing),
    ];
    for (what, slots, callbacks) in owed {
        let kept = slots == callbacks || what == "opening" && pauses && slots > callbacks;
        world.expect(
            kept,
            format_args!("O7: work is left undone: {slots} {what}, {callbacks} callbacks run"),
        );
    }
}

/// `wanted` waiters may be served.
fn check_no_idle_hands(sim: &Sim, world: &mut World, status: &Status, wanted: usize) {
    let coming = status.opening + status.checking + status.cleaning;
    let alive = status.total - status.opening;
    let most = sim.plan.config.max_opening;
    // The first waiters of a queue start few opens. While an open fails, the pool opens no more if
    // a resource may come back.
    let few = most.saturating_sub(alive).max(most.min(2));
    let full = status.total + status.closing >= status.max_size
        || status.opening >= few
        || world.failing && alive > 0;
    world.expect(
        coming >= wanted || status.idle == 0 && full,
        format_args!(
            "O7: {wanted} wait and {coming} are on their way, though {} are idle or there is room",
            status.idle
        ),
    );
}

/// O4, for acquires that have not ended.
fn check_deadlines(world: &mut World) {
    let late = world.asks.values().find(|ask| {
        !ask.dozing
            && ask
                .deadline
                .is_some_and(|deadline| deadline + TICK <= now())
    });
    if let Some(client) = late.map(|ask| ask.client) {
        world.broke(format_args!("O4: client {client} waits past its deadline"));
    }
}
