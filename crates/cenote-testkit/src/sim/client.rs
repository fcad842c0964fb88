//! An acquire under observation, and the ends of a lease. `doings.rs` has what the clients do with
//! them.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::AcquireError;
use tokio::time::Instant;

use super::kinds::{SimLease, SimPool};
use super::meddle::Calling;
use super::outcome::{Acquired, Before, ended};
use super::plan::Lie;
use super::wakes::Vigil;
use super::want::Want;
use super::world::{Ask, Name, Sim, now};
use crate::conformance::cut;

/// How long a client is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// As long as the pool's `acquire_timeout`.
    Pool,
    For(Duration),
    Until(Instant),
}

/// An acquire whose every poll is watched, and its end or its drop too.
pub(super) struct Asking {
    sim: Arc<Sim>,
    pool: SimPool,
    client: usize,
    patience: Patience,
    told: &'static str,
    /// It has a place, and comes before all that are queued.
    has_place: bool,
    /// Set from the first poll to the end.
    number: Option<u64>,
    /// The waker of the last poll.
    vigil: Option<Vigil>,
    acquiring: Option<Pin<Box<dyn Future<Output = Acquired> + Send>>>,
}

impl Asking {
    pub(super) fn new(
        sim: &Arc<Sim>,
        pool: &SimPool,
        client: usize,
        want: Want,
        patience: Patience,
    ) -> Self {
        let patience = match want {
            Want::LeaseOrNothing => Patience::Pool,
            _ => patience,
        };
        Self {
            sim: Arc::clone(sim),
            pool: pool.clone(),
            client,
            patience,
            told: want.name(),
            has_place: matches!(want, Want::LeaseFor(_)),
            number: None,
            vigil: None,
            acquiring: Some(Box::pin(want.ask(pool.clone(), patience))),
        }
    }

    pub(super) fn client(&self) -> usize {
        self.client
    }

    /// Returns by when the pool must grant it.
    pub(super) fn due(&self) -> Option<Instant> {
        let world = self.sim.world();
        world.asks.get(&self.number?)?.due
    }

    /// Any task may poll it from now on.
    pub(super) fn orphan(&self) {
        self.sim.world().astray = true;
    }

    /// Makes it an acquire of this client.
    pub(super) fn join_client(&mut self, client: usize) {
        self.client = client;
        let mut world = self.sim.world();
        if let Some(ask) = self.number.and_then(|number| world.asks.get_mut(&number)) {
            ask.client = client;
        }
    }

    /// Notes whether its client leaves it unpolled on purpose.
    pub(super) fn doze(&self, dozing: bool) {
        let mut world = self.sim.world();
        let Some(ask) = self.number.and_then(|number| world.asks.get_mut(&number)) else {
            return;
        };
        ask.dozing = dozing;
        // The time that passed meanwhile was not the pool's fault.
        ask.deadline = ask.deadline.map(|deadline| deadline.max(now()));
    }

    fn begin(&mut self) -> Before {
        let before = Before::look(&self.sim, &self.pool);
        let limit = self.sim.plan.config.acquire_timeout;
        let deadline = match self.patience {
            Patience::Pool => limit.map(|limit| now() + limit),
            Patience::For(limit) => Some(now() + limit),
            Patience::Until(deadline) => Some(deadline.max(now())),
        };
        let mut world = self.sim.world();
        world.last_ask += 1;
        let number = world.last_ask;
        self.number = Some(number);
        world.note(
            Name(self.client),
            format_args!("ask {number}: {}, {:?}", self.told, Shown(self.patience)),
        );
        let ask = Ask {
            client: self.client,
            began: world.tick,
            deadline,
            due: deadline,
            left_at: None,
            dozing: false,
            again: self.has_place,
        };
        world.asks.insert(number, ask);
        before
    }

    fn join(&self, number: u64) {
        let mut world = self.sim.world();
        world.counted.waited += 1;
        world.note(Name(self.client), format_args!("ask {number}: is queued"));
        let place = if self.sim.tells(Lie::WrongOrder) || self.has_place {
            0
        } else {
            world.queue.len()
        };
        world.queue.insert(place, number);
    }

    /// Polls with the waker of the last poll, or with another one for the same task.
    fn poll_once(&mut self, task: &Waker) -> Poll<Acquired> {
        let first = self.number.is_none().then(|| self.begin());
        let number = self.number.unwrap_or_default();
        let (refuses, found_dead) = {
            let mut world = self.sim.world();
            world.vigils.remove(&number);
            (world.refuses(), world.found_dead)
        };
        let vigil = Vigil::next(self.vigil.take(), &self.sim, task);
        let waker = vigil.waker();
        self.vigil = Some(vigil.clone());
        let acquiring = self
            .acquiring
            .as_mut()
            .expect("an acquire is not polled after its end");
        let polled = {
            let _calling = Calling::begin(&self.sim);
            acquiring.as_mut().poll(&mut Context::from_waker(&waker))
        };
        let waits = matches!(
            polled,
            Poll::Pending | Poll::Ready(Err(AcquireError::TimedOut(_)))
        );
        let joined = first.is_some() && waits;
        if joined {
            self.join(number);
        }
        match &polled {
            Poll::Pending => {
                let mut world = self.sim.world();
                world.vigils.insert(number, vigil);
                let again = found_dead < world.found_dead;
                let due = world.asks.get_mut(&number).and_then(|ask| {
                    ask.again |= again;
                    ask.due
                });
                world.expect(
                    due.is_none_or(|due| now() < due),
                    format_args!(
                        "O4: ask {number} was polled after its deadline and is still pending"
                    ),
                );
            }
            Poll::Ready(acquired) => {
                self.acquiring = None;
                let at_once = first.filter(|_| !joined);
                ended(&self.sim, &self.pool, number, at_once, refuses, acquired);
            }
        }
        polled
    }
}

impl Future for Asking {
    type Output = Acquired;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acquired> {
        let spurious = {
            let rng = &mut self.sim.world().rngs.wakers;
            if rng.u8(0..100) < self.sim.plan.spurious {
                rng.u8(1..=2)
            } else {
                0
            }
        };
        for _ in 0..spurious {
            let polled = self.poll_once(context.waker());
            if polled.is_ready() {
                return polled;
            }
        }
        self.poll_once(context.waker())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Some(acquiring) = self.acquiring.take() else {
            return;
        };
        let Some(number) = self.number else { return };
        {
            let mut world = self.sim.world();
            world.note(Name(self.client), format_args!("ask {number}: gives up"));
            world.vigils.remove(&number);
            let ask = world.asks.remove(&number);
            if let Some(place) = world.queue.iter().position(|other| *other == number) {
                world.queue.remove(place);
                world.counted.cancelled += 1;
                let late = ask.is_some_and(|ask| ask.due.is_some_and(|due| due <= now()));
                world.counted.cancelled_late += u64::from(late);
            }
        }
        let _calling = Calling::begin(&self.sim);
        drop(acquiring);
    }
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Shows a patience without the time of its deadline, which differs from play to play.
struct Shown(Patience);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Patience::Pool => f.write_str("as the pool says"),
            Patience::For(limit) => write!(f, "for {limit:?}"),
            Patience::Until(_) => f.write_str("until a moment that is past"),
        }
    }
}

/// How a lease ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Dropped,
    /// By `SimLease::release`, which is dropped after so many polls.
    Released(usize),
    Discarded,
    Detached,
    Forgotten,
}

pub(super) async fn give_back(sim: &Sim, client: usize, lease: SimLease, end: End) {
    let end = if sim.tells(Lie::LostLease) {
        End::Forgotten
    } else {
        end
    };
    match end {
        End::Dropped | End::Discarded | End::Detached | End::Forgotten => {
            give_back_now(sim, client, lease, end);
        }
        End::Released(polls) => {
            note_end(sim, client, &lease, end);
            let done = cut(polls, SimLease::release(lease)).await;
            let how = if done.is_some() {
                "is done"
            } else {
                "goes on by itself"
            };
            sim.note(Name(client), format_args!("the release {how}"));
        }
    }
}

/// Ends a lease in one of the ways that need no waiting.
pub(super) fn give_back_now(sim: &Sim, client: usize, lease: SimLease, end: End) {
    note_end(sim, client, &lease, end);
    let _calling = Calling::begin(sim);
    match end {
        End::Dropped | End::Released(_) => drop(lease),
        End::Discarded => SimLease::discard(lease),
        End::Detached => {
            let serial = lease.serial;
            let thing = SimLease::detach(lease);
            if let Some(state) = sim.world().things.get_mut(&serial) {
                state.detached = true;
            }
            drop(thing);
        }
        End::Forgotten => forget(lease),
    }
}

/// Records the end in the world before the pool hears of it, because the pool may lend the resource
/// again at once.
fn note_end(sim: &Sim, client: usize, lease: &SimLease, end: End) {
    let serial = lease.serial;
    let mut world = sim.world();
    world.note(Name(client), format_args!("#{serial}: {end:?}"));
    let is_this = |held: &super::world::Held| held.serial == serial && held.client == client;
    if let (End::Forgotten, false) = (end, sim.tells(Lie::LostLease)) {
        if let Some(held) = world.leases.iter_mut().find(|held| is_this(held)) {
            held.forgotten = true;
        }
        return;
    }
    if let Some(place) = world.leases.iter().position(is_this) {
        world.leases.swap_remove(place);
    }
    if let Some(thing) = world.things.get_mut(&serial) {
        thing.holder = None;
    }
    world.prove(serial);
    match end {
        End::Detached => world.counted.detached += 1,
        End::Discarded => {
            world.counted.released += 1;
            world.counted.discarded += 1;
        }
        End::Dropped | End::Released(_) | End::Forgotten => world.counted.released += 1,
    }
}

#[expect(
    clippy::mem_forget,
    reason = "a client that forgets its lease is what is simulated"
)]
fn forget(lease: SimLease) {
    mem::forget(lease);
}
