//! The simulated backend: a manager whose every callback draws what it does, with a record of the
//! resources that exist.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote::breaker::{BreakerState, Failed, Recovery, Strategy, Verdict};
use cenote::config::OnOpenError;
use cenote::event::{
    AcquireTimedOut, Acquired, BreakerChanged, Closed, Leaked, OpenFailed, Opened, PoolClosed,
    Released, Resized,
};
use cenote::{LeaseEnd, Manager, Observer};

use super::meddle;
use super::plan::Lie;
use super::world::{Sim, ThingState, World, now};
use crate::backend::{Call, Fault, Gate, explode};

/// The pooled resource.
#[derive(Debug)]
pub(super) struct Thing {
    pub(super) serial: u64,
    /// The step in which its opening began.
    pub(super) born: u64,
    pub(super) dirty: bool,
    pub(super) broken: bool,
    /// Its check or its clean failed, or a hook refused it.
    pub(super) unfit: bool,
    /// Its close has begun.
    leaves: bool,
    sim: Arc<Sim>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        let mut world = self.sim.world();
        let state = world.things.remove(&self.serial);
        let detached = state.is_some_and(|state| state.detached);
        world.expect(
            self.leaves || detached,
            format_args!("O8: #{} vanished without a close", self.serial),
        );
    }
}

#[derive(Debug)]
pub(super) struct SimManager(pub(super) Arc<Sim>);

/// Selects the counter of a callback that runs.
type Count = fn(&mut World) -> &mut usize;

/// Counts a callback while it runs, including one that is dropped midway.
struct Running<'a>(&'a Sim, Count);

impl<'a> Running<'a> {
    fn begin(sim: &'a Sim, count: Count) -> Self {
        *count(&mut sim.world()) += 1;
        Self(sim, count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.1(&mut self.0.world()) -= 1;
    }
}

impl Sim {
    /// Goes through the gate of `call`.
    async fn pass(&self, call: Call, serial: Option<u64>) -> Result<(), Fault> {
        let (gate, turns) = self.draw(call, serial);
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        gate.pass(call).await
    }

    fn draw(&self, call: Call, serial: Option<u64>) -> (Gate, u8) {
        let mut world = self.world();
        let gate = if world.healed {
            Gate::Pass
        } else {
            self.plan.faults.gate(call, &mut world.rngs.backend)
        };
        let turns = match world.rngs.backend.u8(0..4) {
            0 => world.rngs.backend.u8(1..4),
            _ => 0,
        };
        match serial {
            Some(serial) => world.note("backend", format_args!("{call:?} of #{serial}: {gate:?}")),
            None => world.note("backend", format_args!("{call:?}: {gate:?}")),
        }
        let held = serial
            .and_then(|serial| world.things.get(&serial))
            .is_some_and(|thing| thing.holder.is_some());
        world.expect(!held, "O2: a callback runs on a resource that is held");
        (gate, turns)
    }

    /// Runs a check, a clean or a hook.
    async fn vet(&self, call: Call, thing: &mut Thing) -> Result<(), Fault> {
        let running = Running::begin(self, |world| &mut world.vetting);
        // The resource is unfit unless the callback passes, for the callback may panic or be
        // dropped midway.
        thing.unfit = true;
        self.pass(call, Some(thing.serial)).await?;
        thing.unfit = false;
        drop(running);
        self.world().prove(thing.serial);
        Ok(())
    }

    /// Notes that an open is about to fail, if a waiter must hear of it.
    fn must_be_heard(&self) {
        let waits = self
            .watched()
            .is_some_and(|pool| !pool.queued_wakers().is_empty());
        if waits && self.plan.config.on_open_error == OnOpenError::Fail {
            self.world().failures.must_be_heard += 1;
        }
    }

    /// Runs a callback that cannot wait.
    fn ask_now(&self, call: Call, thing: &Thing) {
        let (gate, _) = self.draw(call, Some(thing.serial));
        if gate == Gate::Panic || thing.broken {
            self.world().found_dead += 1;
        }
        if gate == Gate::Panic {
            explode(call);
        }
    }
}

impl Manager for SimManager {
    type Resource = Thing;
    type Error = Fault;

    async fn open(&self) -> Result<Thing, Fault> {
        let opening = Running::begin(&self.0, |world| &mut world.opening);
        let born = self.0.world().tick;
        if let Err(fault) = self.0.pass(Call::Open, None).await {
            self.0.must_be_heard();
            return Err(fault);
        }
        drop(opening);
        let mut world = self.0.world();
        world.opened += 1;
        let mut serial = world.opened;
        if self.0.tells(Lie::Twins) && world.opened > 1 {
            serial = 1;
        }
        let state = || ThingState {
            holder: None,
            detached: false,
            proven: now(),
            uses: 0,
        };
        if self.0.tells(Lie::Hoarder) {
            let hidden = 1000 + serial;
            world.things.insert(hidden, state());
        }
        world.things.entry(serial).or_insert_with(state);
        drop(world);
        Ok(Thing {
            serial,
            born,
            dirty: false,
            broken: false,
            unfit: false,
            leaves: false,
            sim: Arc::clone(&self.0),
        })
    }

    async fn check(&self, thing: &mut Thing) -> Result<(), Fault> {
        self.0.vet(Call::Check, thing).await?;
        let mut world = self.0.world();
        world.tick += 1;
        if !self.0.tells(Lie::NoProof) {
            world.passed_check_at = world.tick;
        }
        Ok(())
    }

    fn is_broken(&self, thing: &mut Thing, _: LeaseEnd) -> bool {
        self.0.ask_now(Call::IsBroken, thing);
        meddle::in_callback(&self.0, "manager");
        thing.broken
    }

    fn needs_cleaning(&self, thing: &mut Thing) -> bool {
        self.0.ask_now(Call::NeedsCleaning, thing);
        thing.dirty
    }

    async fn clean(&self, thing: &mut Thing) -> Result<(), Fault> {
        self.0.vet(Call::Clean, thing).await?;
        thing.dirty = false;
        Ok(())
    }

    async fn close(&self, mut thing: Thing) -> Result<(), Fault> {
        thing.leaves = true;
        let _running = Running::begin(&self.0, |world| &mut world.closing);
        // A resource whose close fails is closed all the same.
        self.0.pass(Call::Close, Some(thing.serial)).await
    }
}

pub(super) async fn may_acquire(thing: &mut Thing) -> bool {
    let sim = Arc::clone(&thing.sim);
    sim.vet(Call::BeforeAcquire, thing).await.is_ok()
}

pub(super) async fn may_release(thing: &mut Thing) -> bool {
    let sim = Arc::clone(&thing.sim);
    sim.vet(Call::BeforeRelease, thing).await.is_ok()
}

/// A strategy that trips after some failures, recovers after some time, and sometimes panics. After
/// the faults have stopped, it does not trip.
#[derive(Debug)]
pub(super) struct SimStrategy {
    pub(super) sim: Arc<Sim>,
    pub(super) failures: u32,
    pub(super) recover_after: Duration,
}

impl Strategy for SimStrategy {
    fn report_success(&self, state: BreakerState, _: Instant) -> Verdict {
        if state == BreakerState::Recovering {
            Verdict::Activate
        } else {
            Verdict::Keep
        }
    }

    fn report_failure(&self, _: BreakerState, failed: &Failed<'_>, _: Instant) -> Verdict {
        let mut world = self.sim.world();
        if world.healed {
            return Verdict::Keep;
        }
        let draw = world.rngs.backend.u32(0..=self.failures);
        world.note(
            "strategy",
            format_args!("is told of {:?}: {draw}", failed.kind),
        );
        let panics = world.rngs.backend.u8(0..50) == 0;
        drop(world);
        if panics {
            explode(Call::Check);
        }
        if draw == 0 {
            self.sim.world().tripping = true;
            Verdict::Deactivate
        } else {
            Verdict::Keep
        }
    }

    fn should_recover(&self, inactive_for: Duration) -> Recovery {
        match self.recover_after.checked_sub(inactive_for) {
            Some(left) if !left.is_zero() => Recovery::After(left),
            _ => Recovery::Now,
        }
    }
}

/// Writes the pool's own actions into the story.
#[derive(Debug)]
pub(super) struct SimObserver(pub(super) Arc<Sim>);

impl Observer for SimObserver {
    fn acquired(&self, _: &Acquired<'_>) {
        self.0.world().told.0 += 1;
        meddle::in_callback(&self.0, "observer");
    }

    fn released(&self, _: &Released<'_>) {
        self.0.world().told.1 += 1;
        meddle::in_callback(&self.0, "observer");
    }

    fn opened(&self, event: &Opened<'_>) {
        let mut world = self.0.world();
        world.note("pool", format_args!("opened {}", event.id));
        world.failing = false;
    }

    fn open_failed(&self, event: &OpenFailed<'_>) {
        let mut world = self.0.world();
        world.note("pool", format_args!("open failed: {}", event.error));
        world.failing = true;
        world.failures.all += 1;
    }

    fn closed(&self, event: &Closed<'_>) {
        self.0.note(
            "pool",
            format_args!("closed {}: {}", event.id, event.reason),
        );
    }

    fn leaked(&self, event: &Leaked<'_>) {
        self.0
            .note("pool", format_args!("leaked {}", event.holder.id));
    }

    fn breaker_changed(&self, event: &BreakerChanged<'_>) {
        let pool = self.0.watched();
        let state = pool.map_or(event.to, |pool| pool.breaker_state());
        let mut world = self.0.world();
        world.note(
            "pool",
            format_args!("breaker: {} to {}", event.from, event.to),
        );
        // A change within a change is reported first, so only the pool knows which one was the
        // last.
        let recovers = state == BreakerState::Recovering;
        world.recovering_since = recovers.then_some(world.tick);
        world.inactive = state == BreakerState::Inactive;
        if [event.from, event.to].contains(&BreakerState::Inactive) {
            world.inactive_at = world.tick;
        }
        drop(world);
        meddle::in_callback(&self.0, "observer");
    }

    fn timed_out(&self, _: &AcquireTimedOut<'_>) {
        meddle::in_callback(&self.0, "observer");
    }

    fn pool_closed(&self, _: &PoolClosed<'_>) {
        meddle::in_callback(&self.0, "observer");
    }

    fn resized(&self, event: &Resized<'_>) {
        self.0.note(
            "pool",
            format_args!("resized {} to {}", event.from, event.to),
        );
    }
}
