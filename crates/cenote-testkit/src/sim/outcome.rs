//! The oracles that look at an acquire when it ends.

use cenote::config::{Nested, OnOpenError};
use cenote::{AcquireError, Permit};

use super::backend::SimManager;
use super::kinds::{SimLease, SimPool};
use super::oracle::TICK;
use super::plan::Lie;
use super::world::{Ask, Held, Name, Sim, World, now};
use crate::backend::Fault;

pub(super) type Acquired = Result<Got, AcquireError<Fault>>;

/// What a client gets.
#[derive(Debug)]
pub(super) enum Got {
    Lease(SimLease),
    Permit(Permit<SimManager>),
    /// The client did not want to be queued.
    Nothing,
}

impl Got {
    pub(super) fn lease(self) -> Option<SimLease> {
        match self {
            Self::Lease(lease) => Some(lease),
            Self::Permit(_) | Self::Nothing => None,
        }
    }
}

/// The pool just before the first poll of an acquire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Zero if the plan let no oracle look.
    waiting: usize,
    lends: bool,
}

impl Before {
    pub(super) fn look(sim: &Sim, pool: &SimPool) -> Self {
        Self {
            waiting: waiting(sim, pool),
            lends: sim.world().lends(),
        }
    }
}

/// Why the pool lends nothing at a moment, not even a resource that it granted before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refuses {
    pub(super) closed: bool,
    /// Since when the breaker is inactive.
    pub(super) inactive: Option<u64>,
}

/// Counts of open errors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Failures {
    pub(super) all: u64,
    /// Errors that came while a waiter was queued.
    pub(super) must_be_heard: u64,
    /// Errors that a client was told.
    pub(super) heard: u64,
}

fn waiting(sim: &Sim, pool: &SimPool) -> usize {
    if sim.looks() {
        pool.status().waiting
    } else {
        0
    }
}

/// Checks an acquire that has ended. `at_once` is set if it was never queued. `refuses` is as it
/// was before the last poll.
pub(super) fn ended(
    sim: &Sim,
    pool: &SimPool,
    number: u64,
    at_once: Option<Before>,
    refuses: Refuses,
    acquired: &Acquired,
) {
    // In the middle of another call the clients' queue lags behind the pool's.
    let meddling = sim.world().meddling;
    let waiting = if meddling { 0 } else { waiting(sim, pool) };
    let mut world = sim.world();
    let world = &mut *world;
    let Some(ask) = world.asks.remove(&number) else {
        return world.broke("an acquire ended twice");
    };
    world.note(
        Name(ask.client),
        format_args!("ask {number}: {}", told(acquired)),
    );
    let place = world.queue.iter().position(|other| *other == number);
    if let Some(place) = place {
        world.queue.remove(place);
        let in_turn = matches!(acquired, Ok(_) | Err(AcquireError::Open { .. }));
        let behind = world.queue.len() - place;
        let ahead = world.queue[..place].iter();
        let again = ahead.filter(|other| world.asks[other].again).count();
        world.expect(
            !in_turn || waiting <= behind + again,
            format_args!(
                "O3: ask {number} was served before its turn: {waiting} wait, {behind} came later"
            ),
        );
    }
    check_deadline(sim, world, ask, acquired);
    let holds = world.leases.iter().any(|held| held.client == ask.client);
    let config = &sim.plan.config;
    match acquired {
        Ok(Got::Nothing) => world.expect(place.is_none(), "queued, and then told nothing"),
        Ok(Got::Permit(_)) => {
            world.permits += usize::from(!sim.tells(Lie::LostPlace));
            world.expect(!refuses.closed, "O6: a place in a pool that is closed");
            if place.is_some() {
                check_granted_in_time(sim, world, number, ask);
            }
        }
        Ok(Got::Lease(lease)) => {
            world.counted.acquired += 1;
            world.expect(!refuses.closed, "O6: lent by a pool that is closed");
            let inactive = world.inactive && refuses.inactive == Some(world.inactive_at);
            world.expect(!inactive, "O6: lent by a pool that is inactive");
            if place.is_some() {
                check_granted_in_time(sim, world, number, ask);
            }
            world.expect(
                !(holds && !world.astray && config.nested == Nested::Deny),
                "O6: a nested acquire was not denied",
            );
            check_fit(sim, world, ask, lease);
            check_proven(sim, world, ask);
            if let Some(before) = at_once {
                check_at_once(sim, world, before, ask, lease);
            }
            take(world, ask, lease);
        }
        Err(AcquireError::TimedOut(_)) => {
            world.counted.timed_out += 1;
            world.expect(
                place.is_some(),
                "O4: an acquire timed out without being queued",
            );
        }
        Err(AcquireError::Closed { .. }) => {
            let began = world.closing_began;
            world.expect(began, "O6: told that the pool is closed, and it is open");
        }
        Err(AcquireError::Unavailable { .. }) => check_unavailable(sim, world, number, ask),
        Err(AcquireError::Open { .. }) => {
            world.failures.heard += 1;
            world.expect(
                config.on_open_error == OnOpenError::Fail,
                "an open's error reached a caller, though it is retried",
            );
        }
        Err(AcquireError::Rejected { .. }) => world.expect(
            config.max_waiters.is_some() && place.is_none(),
            "rejected without `max_waiters`, or after it was queued",
        ),
        Err(AcquireError::Nested { .. }) => world.expect(
            (holds || world.astray) && config.nested == Nested::Deny,
            "denied as nested, though the client holds nothing",
        ),
        Err(_) => {}
    }
}

fn told(acquired: &Acquired) -> String {
    match acquired {
        Ok(Got::Lease(lease)) => format!("got #{} (use {})", lease.serial, SimLease::uses(lease)),
        Ok(Got::Permit(_)) => "got a permit".to_owned(),
        Ok(Got::Nothing) => "finds nothing".to_owned(),
        Err(AcquireError::TimedOut(timed_out)) => {
            format!("timed out, phase {:?}", timed_out.phase())
        }
        Err(error) => error.to_string(),
    }
}

/// O4.
fn check_deadline(sim: &Sim, world: &mut World, ask: Ask, acquired: &Acquired) {
    let lie = sim.tells(Lie::EarlyDeadline);
    match ask.deadline {
        Some(deadline) => {
            let latest = if lie {
                deadline - TICK
            } else {
                deadline + TICK
            };
            world.expect(now() <= latest, "O4: an acquire ended after its deadline");
            let early = now() < deadline && matches!(acquired, Err(AcquireError::TimedOut(_)));
            world.expect(!early, "O4: an acquire timed out before its deadline");
        }
        None => world.expect(
            !matches!(acquired, Err(AcquireError::TimedOut(_))),
            "O4: an acquire timed out without a deadline",
        ),
    }
}

/// O4: a grant after the deadline does not count. A grant before the deadline may be claimed until
/// the pool takes it back.
fn check_granted_in_time(sim: &Sim, world: &mut World, number: u64, ask: Ask) {
    let granted = ask.left_at.unwrap_or_else(now);
    let due = ask.due.map(|due| match sim.tells(Lie::EarlyDue) {
        true => due - TICK * 1000,
        false => due,
    });
    world.expect(
        due.is_none_or(|due| granted < due),
        format_args!("O4: ask {number} was granted a resource after its deadline"),
    );
}

/// O6: the breaker was inactive at some time during the acquire.
fn check_unavailable(sim: &Sim, world: &mut World, number: u64, ask: Ask) {
    let inactive =
        world.inactive || world.tripping || world.trips > 0 || world.inactive_at >= ask.began;
    world.expect(
        inactive && !sim.tells(Lie::NeverInactive),
        format_args!("O6: ask {number} was told that the breaker is inactive, and it was active"),
    );
}

impl World {
    /// A client gives its permit up, or uses it. A lie may have hidden it.
    pub(super) fn permit_is_gone(&mut self) {
        self.permits = self.permits.saturating_sub(1);
    }
}

/// O6: a recovering pool has checked a resource by itself before it lends to new callers.
fn check_proven(sim: &Sim, world: &mut World, ask: Ask) {
    let Some(since) = world.recovering_since else {
        return;
    };
    let is_new = sim.plan.config.self_probe && ask.began > since;
    world.expect(
        !is_new || world.passed_check_at > since,
        "O6: lent by a pool that has not proven its backend alive",
    );
}

/// O6.
fn check_fit(sim: &Sim, world: &mut World, ask: Ask, lease: &SimLease) {
    let bad = [
        (lease.dirty, "dirty"),
        (lease.broken, "broken"),
        (lease.unfit, "refused or dead"),
    ];
    for (is, what) in bad {
        world.expect(!is, format_args!("O6: #{} was lent {what}", lease.serial));
    }
    let invalidated = ask.began > world.invalidated_at && lease.born < world.invalidated_at;
    world.expect(
        !invalidated,
        format_args!("O6: #{} was lent though it is invalidated", lease.serial),
    );
    let most = sim.plan.config.max_uses.unwrap_or(u64::MAX);
    world.expect(
        SimLease::uses(lease) <= most,
        format_args!("O6: #{} was lent too often", lease.serial),
    );
}

/// O3 and O6, for an acquire that was served at once.
fn check_at_once(sim: &Sim, world: &mut World, before: Before, ask: Ask, lease: &SimLease) {
    let config = &sim.plan.config;
    world.expect(
        before.waiting == 0 || ask.again,
        format_args!("O3: barging: {} were waiting", before.waiting),
    );
    world.expect(before.lends, "O6: lent by a pool that does not lend");
    let unchecked =
        sim.plan.before_acquire || config.check_after_idle.is_some_and(|after| after.is_zero());
    world.expect(!unchecked, "O6: lent at once, unchecked");
    let proven = world.things.get(&lease.serial).map(|thing| thing.proven);
    let stale = config
        .check_after_idle
        .zip(proven)
        .is_some_and(|(after, proven)| now() - proven >= after);
    world.expect(
        !stale,
        format_args!("O6: #{} was lent at once, unproven", lease.serial),
    );
    let expired = config
        .max_lifetime
        .is_some_and(|most| SimLease::age(lease) >= most);
    world.expect(
        !expired,
        format_args!("O6: #{} was lent expired", lease.serial),
    );
}

/// O2: notes the holder of a resource.
fn take(world: &mut World, ask: Ask, lease: &SimLease) {
    let serial = lease.serial;
    world.leases.push(Held {
        serial,
        client: ask.client,
        began: ask.began,
        forgotten: false,
    });
    let before = world.things.get_mut(&serial).map(|thing| {
        thing.uses += 1;
        (thing.holder.replace(ask.client), thing.uses)
    });
    match before {
        Some((None, uses)) => world.expect(
            SimLease::uses(lease) == uses,
            format_args!("O5: #{serial} was lent {uses} times, and its lease counts otherwise"),
        ),
        Some((Some(other), _)) => {
            world.broke(format_args!("O2: #{serial} is held by client {other} too"))
        }
        None => world.broke(format_args!("O2: #{serial} does not exist any more")),
    }
}
