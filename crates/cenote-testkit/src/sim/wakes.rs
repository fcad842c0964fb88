//! The wake oracle (O9) and its wakers. The simulation is the executor, so it knows the waker of
//! every poll and whether that waker was woken.
//!
//! A wake by a timer does not count. On a paused clock each waiter has a timer of its own, which
//! would hide every lost wake-up. So a waker that leaves the queue must be woken at that moment,
//! even if it was woken before.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::kinds::SimPool;
use super::meddle;
use super::plan::Lie;
use super::world::{Sim, World, now};

/// The waker of some polls of one acquire. After a poll with another waker, it wakes no task any
/// more.
#[derive(Debug)]
struct Witness {
    /// Weak, because the pool may keep a waker for any time.
    sim: Weak<Sim>,
    /// The task of the last poll.
    task: Mutex<Waker>,
    /// How often it was woken since the last poll.
    wakes: AtomicU32,
    replaced: AtomicBool,
}

impl Wake for Witness {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        if !self.replaced.load(Ordering::Relaxed) {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.wake_by_ref();
        }
        // The pool has more wakers to wake. User code in between must not disturb that.
        if let Some(sim) = self.sim.upgrade() {
            meddle::in_waker(&sim);
        }
    }
}

/// The waker of the last poll of a pending acquire.
#[derive(Clone, Debug)]
pub(super) struct Vigil {
    witness: Arc<Witness>,
    waker: Waker,
    /// How often it was woken when it was last seen in the queue. Its timer wakes it too and leaves
    /// it in the queue.
    wakes_in_queue: u32,
}

impl Vigil {
    /// Returns the waker for the next poll: that of the last poll, or another one for the same
    /// task.
    pub(super) fn next(before: Option<Self>, sim: &Arc<Sim>, task: &Waker) -> Self {
        let again = sim.world().rngs.wakers.bool();
        if let Some(mut vigil) = before {
            if again {
                let mut known = vigil
                    .witness
                    .task
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                known.clone_from(task);
                drop(known);
                vigil.witness.wakes.store(0, Ordering::Relaxed);
                vigil.wakes_in_queue = 0;
                return vigil;
            }
            vigil.witness.replaced.store(true, Ordering::Relaxed);
        }
        let witness = Arc::new(Witness {
            sim: Arc::downgrade(sim),
            task: Mutex::new(task.clone()),
            wakes: AtomicU32::new(0),
            replaced: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&witness));
        Self {
            witness,
            waker,
            wakes_in_queue: 0,
        }
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn wakes(&self) -> u32 {
        self.witness.wakes.load(Ordering::Relaxed)
    }

    /// Returns whether it was woken since it was last seen in the queue.
    fn was_woken(&self) -> bool {
        self.wakes() > self.wakes_in_queue
    }
}

/// On a paused clock the upkeep task stands in for the alarm, and runs up to this much later.
const ALARM_IS_LATE: Duration = Duration::from_millis(15);

/// Checks between two steps that every pending acquire will be woken.
pub(super) fn check(sim: &Sim, pool: &SimPool) {
    look(sim, pool, true);
}

/// Checks the same in a callback of the pool, where one acquire may be in the middle of its poll.
pub(super) fn check_within(sim: &Sim) {
    if sim.world().waking > 0 {
        return;
    }
    if let Some(pool) = sim.watched() {
        look(sim, &pool, false);
    }
}

fn look(sim: &Sim, pool: &SimPool, between_steps: bool) {
    let queued = pool.queued_wakers();
    let mut world = sim.world();
    let mut known = 0;
    let mut broken = None;
    for (number, vigil) in &mut world.vigils {
        let places = places(&queued, vigil);
        known += places;
        if places > 0 {
            vigil.wakes_in_queue = vigil.wakes();
        }
        if places == 0 && !vigil.was_woken() {
            broken = Some(format!(
                "the last waker of ask {number} is neither queued nor woken"
            ));
        } else if places > 1 {
            broken = Some(format!(
                "the last waker of ask {number} is queued {places} times"
            ));
        }
    }
    if between_steps && known < queued.len() {
        broken.get_or_insert("a waker is queued that is not of a last poll".to_owned());
    }
    if sim.tells(Lie::LostWaker) && known > 0 {
        broken = Some("the last waker of an ask is not where the oracle looks".to_owned());
    }
    if let Some(broken) = broken {
        world.broke(format_args!("O9: {broken}"));
    }
}

fn places(queued: &[Waker], vigil: &Vigil) -> usize {
    let own = queued.iter().filter(|waker| waker.will_wake(&vigil.waker));
    own.count()
}

/// Called when the clock is about to jump. It notes which acquires have left the queue, and finds
/// those that should have. The clock stands still between two such calls, so the oracle knows the
/// time of every grant.
pub(super) fn check_rest(sim: &Sim, pool: &SimPool) {
    let queued = pool.queued_wakers();
    let mut world = sim.world();
    let World { vigils, asks, .. } = &mut *world;
    let mut late = None;
    for (number, vigil) in vigils.iter() {
        let Some(ask) = asks.get_mut(number) else {
            continue;
        };
        if places(&queued, vigil) == 0 {
            ask.left_at.get_or_insert(now());
            continue;
        }
        ask.left_at = None;
        if ask.due.is_some_and(|due| due + ALARM_IS_LATE <= now()) {
            late = Some(*number);
        }
    }
    if let Some(number) = late {
        world.broke(format_args!("O4: ask {number} is queued past its deadline"));
    }
}

/// Returns how many acquires may have an unclaimed grant: they left the queue, and their time is
/// not over.
pub(super) fn may_be_unclaimed(world: &World) -> usize {
    let asks = world
        .queue
        .iter()
        .filter_map(|number| world.asks.get(number));
    let timely = asks.filter(|ask| ask.due.is_none_or(|due| due + ALARM_IS_LATE > now()));
    timely.count()
}
