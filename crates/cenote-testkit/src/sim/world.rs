//! The world: what the simulation knows without asking the pool. It is the other half of every
//! equation that the oracles check.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use cenote::Status;
use fastrand::Rng;
use tokio::time::Instant;

use super::client::Asking;
use super::kinds::{SimPool, SimWeak};
use super::outcome::{Failures, Refuses};
use super::plan::{Lie, Plan};
use super::wakes::Vigil;

/// One play: a plan and its world.
#[derive(Debug)]
pub(super) struct Sim {
    pub(super) plan: Plan,
    world: Mutex<World>,
    /// Acquires that were polled and then left behind. Any client may poll or drop them.
    orphans: Mutex<Vec<Pin<Box<Asking>>>>,
    /// The pool of the play, for user code that the pool calls.
    watched: OnceLock<SimWeak>,
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) story: Story,
    pub(super) rngs: Rngs,
    pub(super) turns: Turns,
    /// Counts the steps. It orders events that happen at the same virtual time.
    pub(super) tick: u64,
    /// The faults have stopped.
    pub(super) healed: bool,

    // The backend's side.
    pub(super) things: BTreeMap<u64, ThingState>,
    pub(super) opened: u64,
    pub(super) opening: usize,
    /// Checks, cleans and hooks that run now.
    pub(super) vetting: usize,
    pub(super) closing: usize,

    // The clients' side.
    pub(super) asks: BTreeMap<u64, Ask>,
    /// The wakers of the acquires that are pending and are not being polled.
    pub(super) vigils: BTreeMap<u64, Vigil>,
    pub(super) last_ask: u64,
    /// The acquires that are queued, or were served and do not know it yet, in the order of
    /// arrival.
    pub(super) queue: Vec<u64>,
    pub(super) leases: Vec<Held>,
    /// The places that clients have.
    pub(super) permits: usize,
    pub(super) counted: Counted,
    /// An acquire was left behind, so the task that holds a lease may be another one than the task
    /// that asked for it.
    pub(super) astray: bool,
    /// How often a resource was found dead when it was lent or returned.
    pub(super) found_dead: u64,
    /// How many acquires and returns the observer was told of.
    pub(super) told: (u64, u64),
    pub(super) failures: Failures,
    /// The last open that ended has failed.
    pub(super) failing: bool,

    // The whole pool, as the clients have set it.
    pub(super) max_size: usize,
    pub(super) cap: usize,
    pub(super) closed: bool,
    /// The pool is closed or about to be.
    pub(super) closing_began: bool,
    pub(super) suspended: bool,
    /// The breaker is inactive, so nothing is lent.
    pub(super) inactive: bool,
    /// When the breaker last became inactive or ceased to be.
    pub(super) inactive_at: u64,
    /// How many calls that trip the breaker are under way.
    pub(super) trips: usize,
    /// The strategy has tripped the breaker in this step.
    pub(super) tripping: bool,
    pub(super) invalidated_at: u64,
    /// When the breaker began to recover, if it does.
    pub(super) recovering_since: Option<u64>,
    /// When a check last went well.
    pub(super) passed_check_at: u64,
    pub(super) seen: Option<Status>,

    // User code that calls back.
    /// How many calls of the pool are under way.
    pub(super) calls: usize,
    /// How many wakers are being woken.
    pub(super) waking: usize,
    pub(super) meddling: bool,
}

/// The backend's knowledge of a resource.
#[derive(Debug)]
pub(super) struct ThingState {
    pub(super) holder: Option<usize>,
    /// It has left the pool for good, and a client has it.
    pub(super) detached: bool,
    /// When it was last known to be alive: opened, returned or checked.
    pub(super) proven: Instant,
    /// How often it was lent.
    pub(super) uses: u64,
}

/// An acquire that has been polled and has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) client: usize,
    /// The step of its first poll.
    pub(super) began: u64,
    /// By when it must end. That is later than its client asked for, if the client did not poll it.
    pub(super) deadline: Option<Instant>,
    /// By when it must be granted.
    pub(super) due: Option<Instant>,
    /// The latest time at which it left the queue.
    pub(super) left_at: Option<Instant>,
    /// Its client leaves it unpolled on purpose.
    pub(super) dozing: bool,
    /// It was granted a dead resource and is queued again, or it has a place.
    pub(super) again: bool,
}

/// A lease in the hands of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) serial: u64,
    pub(super) client: usize,
    /// When its acquire began.
    pub(super) began: u64,
    pub(super) forgotten: bool,
}

/// The clients' own counts. The pool must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) acquired: u64,
    pub(super) waited: u64,
    pub(super) timed_out: u64,
    pub(super) cancelled: u64,
    /// How many of the cancelled acquires ended after their deadline. The pool may have counted a
    /// timeout.
    pub(super) cancelled_late: u64,
    pub(super) released: u64,
    pub(super) discarded: u64,
    pub(super) detached: u64,
}

#[derive(Debug, Default)]
pub(super) struct Rngs {
    pub(super) backend: Rng,
    pub(super) order: Rng,
    pub(super) looks: Rng,
    pub(super) wakers: Rng,
    pub(super) meddle: Rng,
}

/// The state of the scheduler.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Clients that were woken.
    pub(super) ready: Vec<usize>,
    /// Clients that may be polled now.
    pub(super) admitted: Vec<bool>,
    pub(super) tasks: Vec<Option<Waker>>,
    /// The number of each client's last waker. Earlier wakers wake no client.
    pub(super) wakers: Vec<u64>,
    pub(super) scheduler: Option<Waker>,
    pub(super) done: usize,
}

#[derive(Debug, Default)]
pub(super) struct Story {
    text: String,
    lines: usize,
    began: Option<Instant>,
    over: bool,
    broken: Option<String>,
}

impl Sim {
    pub(super) fn new(plan: Plan) -> Arc<Self> {
        let seed = plan.seed;
        let clients = plan.clients;
        let max_size = plan.config.max_size;
        let world = World {
            rngs: Rngs {
                backend: Rng::with_seed(seed ^ 0xBACE),
                order: Rng::with_seed(seed ^ 0x0DE5),
                looks: Rng::with_seed(seed ^ 0x100C),
                wakers: Rng::with_seed(seed ^ 0x3A4E),
                meddle: Rng::with_seed(seed ^ 0x3EDD),
            },
            turns: Turns {
                ready: (0..clients).collect(),
                admitted: vec![false; clients],
                tasks: vec![None; clients],
                wakers: vec![0; clients],
                scheduler: None,
                done: 0,
            },
            max_size,
            cap: max_size,
            ..World::default()
        };
        Arc::new(Self {
            plan,
            world: Mutex::new(world),
            orphans: Mutex::default(),
            watched: OnceLock::new(),
        })
    }

    pub(super) fn watch(&self, pool: &SimPool) {
        // The cell is empty: there is one pool in a play.
        let _ = self.watched.set(pool.downgrade());
    }

    /// Returns the pool, as long as it has a handle.
    pub(super) fn watched(&self) -> Option<SimPool> {
        self.watched.get().and_then(SimWeak::upgrade)
    }

    /// Locks the world, for a look or a note. The pool is never called under this lock.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, who: impl fmt::Display, what: impl fmt::Display) {
        self.world().note(who, what);
    }

    /// Takes an acquire that its client does not poll any more.
    pub(super) fn leave_behind(&self, asking: Pin<Box<Asking>>) {
        self.orphans().push(asking);
    }

    /// Returns one of the acquires that were left behind.
    pub(super) fn adopt(&self) -> Option<Pin<Box<Asking>>> {
        let mut orphans = self.orphans();
        let count = orphans.len();
        if count == 0 {
            return None;
        }
        let place = self.world().rngs.wakers.usize(..count);
        Some(orphans.swap_remove(place))
    }

    /// Returns all acquires that were left behind.
    pub(super) fn all_orphans(&self) -> Vec<Pin<Box<Asking>>> {
        std::mem::take(&mut *self.orphans())
    }

    /// Drops all acquires that were left behind. Their lock is not held, because a drop calls the
    /// pool.
    pub(super) fn abandon_orphans(&self) {
        drop(self.all_orphans());
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<Pin<Box<Asking>>>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the oracles look at the pool now.
    pub(super) fn looks(&self) -> bool {
        self.world().rngs.looks.u8(0..100) >= self.plan.blind
    }

    pub(super) fn tells(&self, lie: Lie) -> bool {
        self.plan.lie == Some(lie)
    }

    /// Returns the story, unless it is being written.
    pub(super) fn story_so_far(&self) -> String {
        let world = self.world.try_lock();
        world.map_or_else(|_| String::new(), |world| world.story.text.clone())
    }

    /// Returns the story, the number of its steps and the broken promise. It empties the world,
    /// because a forgotten lease keeps the world alive for ever.
    pub(super) fn conclude(&self) -> (String, usize, Option<String>) {
        self.abandon_orphans();
        let world = std::mem::take(&mut *self.world());
        self.world().story.over = true;
        let story = &world.story;
        let taken = (story.text.clone(), story.lines, story.broken.clone());
        // A drop of what is left in the world may lock the world.
        drop(world);
        taken
    }
}

impl World {
    pub(super) fn begin(&mut self) {
        self.story.began = Some(now());
    }

    /// Ends the story. There is no virtual time outside the runtime.
    pub(super) fn end(&mut self) {
        self.story.over = true;
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.story
            .began
            .map_or(Duration::ZERO, |began| now() - began)
    }

    pub(super) fn note(&mut self, who: impl fmt::Display, what: impl fmt::Display) {
        if self.story.over {
            return;
        }
        self.tick += 1;
        let at = self.elapsed().as_millis();
        let story = &mut self.story;
        story.lines += 1;
        let line = story.lines;
        // Writing to a string does not fail.
        let _ = writeln!(story.text, "{line:>4}  {at:>6} ms  {who:<9} {what}");
    }

    /// Notes a broken promise. Only the first one counts.
    pub(super) fn broke(&mut self, promise: impl fmt::Display) {
        if self.is_broken() || self.story.over {
            return;
        }
        self.note("oracle", format_args!("broken: {promise}"));
        self.story.broken = Some(promise.to_string());
        if let Some(scheduler) = &self.turns.scheduler {
            scheduler.wake_by_ref();
        }
    }

    pub(super) fn expect(&mut self, holds: bool, promise: impl fmt::Display) {
        if !holds {
            self.broke(promise);
        }
    }

    /// Returns whether the pool lends, as far as the clients and the observer know.
    pub(super) fn lends(&self) -> bool {
        !self.closed && !self.suspended && !self.inactive
    }

    pub(super) fn refuses(&self) -> Refuses {
        Refuses {
            closed: self.closed,
            inactive: self.inactive.then_some(self.inactive_at),
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.story.broken.is_some()
    }

    /// Notes that this resource is alive.
    pub(super) fn prove(&mut self, serial: u64) {
        if let Some(thing) = self.things.get_mut(&serial) {
            thing.proven = now();
        }
    }

    pub(super) fn forgotten(&self) -> usize {
        self.leases.iter().filter(|held| held.forgotten).count()
    }

    /// Returns how many of the pool's resources exist.
    pub(super) fn alive(&self) -> usize {
        self.things.values().filter(|thing| !thing.detached).count()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the simulation has a clock of its own, and this is where it is read"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The name of a client in the story.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name(pub(super) usize);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("client {}", self.0))
    }
}
