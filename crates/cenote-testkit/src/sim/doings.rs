//! The actions of a client: it acquires in every way, holds, nests, gives up, and controls the
//! whole pool.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use super::client::{Asking, End, Patience, give_back};
use super::kinds::{SimLease, SimPool};
use super::knobs::{self, Knob, resized};
use super::meddle::Calling;
use super::outcome::{Acquired, Before, Got, ended};
use super::plan::Kind;
use super::waits::{GivesUp, poll_once, wait};
use super::want::Want;
use super::world::{Ask, Name, Sim};
use crate::backend::{Call, explode};
use crate::conformance::cut;

pub(super) struct Client {
    pub(super) sim: Arc<Sim>,
    pub(super) pool: SimPool,
    pub(super) me: usize,
    pub(super) rng: Rng,
    /// When the play began.
    pub(super) began: Instant,
}

impl Client {
    pub(super) async fn live(mut self) {
        for _ in 0..self.sim.plan.steps {
            if self.sim.plan.blind == 0 || self.rng.bool() {
                self.think().await;
            }
            if self.is_over() {
                return;
            }
            if self.rng.u8(0..100) < self.sim.plan.control {
                self.control().await;
            } else if self.rng.u8(0..6) == 0 {
                self.try_once().await;
            } else if self.rng.u8(0..8) == 0 {
                self.visit().await;
            } else if self.rng.u8(0..10) == 0 {
                self.try_or_open().await;
            } else if self.rng.u8(0..8) == 0 && self.sim.plan.kind == Kind::Threads {
                self.reserve().await;
            } else if self.sim.plan.blind > 0 && self.rng.bool() {
                self.bustle().await;
            } else {
                self.acquire(0).await;
            }
        }
    }

    /// Takes several short leases in a row, which go by tray if no acquire waits. The last one is
    /// held like any other lease.
    async fn bustle(&mut self) {
        for left in (0..self.rng.u8(3..10)).rev() {
            let asking = self.asking(Want::Lease, Patience::Pool);
            let Ok(Got::Lease(lease)) = asking.await else {
                return;
            };
            if left == 0 || self.is_over() {
                return self.use_it(lease, 0).await;
            }
            if self.rng.u8(0..4) == 0 {
                tokio::task::yield_now().await;
            }
            give_back(&self.sim, self.me, lease, End::Dropped).await;
        }
    }

    fn is_over(&self) -> bool {
        let world = self.sim.world();
        world.healed || world.is_broken()
    }

    fn note(&self, what: impl std::fmt::Display) {
        self.sim.note(Name(self.me), what);
    }

    /// Pauses for some turns or for some time.
    async fn think(&mut self) {
        if self.rng.bool() {
            for _ in 0..self.rng.u8(0..4) {
                tokio::task::yield_now().await;
            }
        } else {
            let pause = self.pause();
            sleep(pause).await;
        }
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.rng.u64(0..=self.sim.plan.pace))
    }

    async fn acquire(&mut self, depth: u8) {
        // A client that holds a lease and waits for another one without a deadline may wait for
        // itself.
        let patience = match self.rng.u8(0..10) {
            0..=4 if depth == 0 => Patience::Pool,
            5..=6 => Patience::For(Duration::from_micros(self.rng.u64(0..=2))),
            7 => Patience::Until(self.began),
            _ => Patience::For(self.pause() * 2 + Duration::from_micros(self.rng.u64(0..=1500))),
        };
        let gives_up = self.gives_up();
        let asking = Box::pin(self.asking(Want::Lease, patience));
        let acquired = match gives_up {
            GivesUp::LeftBehind => self.leave_behind(asking).await,
            _ => wait(asking, gives_up).await,
        };
        if let Some(Ok(Got::Lease(lease))) = acquired {
            self.use_it(lease, depth).await;
        }
    }

    fn asking(&self, want: Want, patience: Patience) -> Asking {
        Asking::new(&self.sim, &self.pool, self.me, want, patience)
    }

    fn gives_up(&mut self) -> GivesUp {
        match self.rng.u8(0..16) {
            0..=1 => GivesUp::AfterPolls(self.rng.usize(0..4)),
            2 => GivesUp::After(self.pause()),
            3 => GivesUp::Dozes(self.pause()),
            4 => GivesUp::DozesOff(self.pause()),
            5 => GivesUp::Restless(self.pause()),
            6 if self.sim.plan.meddle > 0 => GivesUp::LeftBehind,
            _ => GivesUp::Never,
        }
    }

    async fn try_or_open(&mut self) {
        let gives_up = self.gives_up();
        let asking = self.asking(Want::LeaseOrNothing, Patience::Pool);
        if let Some(Ok(Got::Lease(lease))) = wait(Box::pin(asking), gives_up).await {
            self.use_it(lease, 0).await;
        }
    }

    /// Reserves a place, and gives it up or exchanges it for a lease.
    async fn reserve(&mut self) {
        let patience = match self.rng.bool() {
            true => Patience::Pool,
            false => Patience::For(self.pause() * 2),
        };
        let gives_up = self.gives_up();
        let asking = self.asking(Want::Place, patience);
        let Some(Ok(Got::Permit(permit))) = wait(Box::pin(asking), gives_up).await else {
            return;
        };
        self.think().await;
        self.sim.world().permit_is_gone();
        if self.rng.u8(0..4) == 0 {
            self.note("gives its place up");
            let _calling = Calling::begin(&self.sim);
            return drop(permit);
        }
        let gives_up = self.gives_up();
        let asking = self.asking(Want::LeaseFor(permit), Patience::Pool);
        if let Some(Ok(Got::Lease(lease))) = wait(Box::pin(asking), gives_up).await {
            self.use_it(lease, 0).await;
        }
    }

    async fn leave_behind(&self, mut asking: Pin<Box<Asking>>) -> Option<Acquired> {
        match poll_once(&mut asking).await {
            Poll::Ready(acquired) => Some(acquired),
            Poll::Pending => {
                asking.doze(true);
                asking.orphan();
                self.note("leaves it behind");
                self.sim.leave_behind(asking);
                None
            }
        }
    }

    /// Polls or drops an acquire that another client left behind.
    async fn visit(&mut self) {
        let Some(mut asking) = self.sim.adopt() else {
            return;
        };
        if self.rng.u8(0..4) == 0 {
            return drop(asking);
        }
        self.note("takes up an acquire that was left behind");
        asking.doze(false);
        asking.join_client(self.me);
        let gives_up = match self.rng.bool() {
            true => GivesUp::Restless(self.pause()),
            false => GivesUp::AfterPolls(self.rng.usize(1..4)),
        };
        match wait(asking, gives_up).await {
            Some(Ok(Got::Lease(lease))) => self.use_it(lease, 0).await,
            Some(Ok(Got::Permit(_))) => self.sim.world().permit_is_gone(),
            _ => {}
        }
    }

    async fn try_once(&mut self) {
        let before = Before::look(&self.sim, &self.pool);
        let number = {
            let mut world = self.sim.world();
            world.last_ask += 1;
            let number = world.last_ask;
            world.note(Name(self.me), format_args!("ask {number}: tries"));
            let ask = Ask {
                client: self.me,
                began: world.tick,
                deadline: None,
                due: None,
                left_at: None,
                dozing: false,
                again: false,
            };
            world.asks.insert(number, ask);
            number
        };
        let refuses = self.sim.world().refuses();
        let tried = {
            let _calling = Calling::begin(&self.sim);
            self.pool.try_acquire()
        };
        let lease = match tried {
            Ok(None) => {
                self.sim.world().asks.remove(&number);
                return self.note(format_args!("ask {number}: finds nothing"));
            }
            Ok(Some(lease)) => Ok(Got::Lease(lease)),
            Err(error) => Err(error),
        };
        ended(&self.sim, &self.pool, number, Some(before), refuses, &lease);
        if let Ok(Got::Lease(lease)) = lease {
            self.use_it(lease, 0).await;
        }
    }

    /// Holds a lease, perhaps acquires another one meanwhile, and ends the lease in some way.
    fn use_it(
        &mut self,
        mut lease: SimLease,
        depth: u8,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            self.think().await;
            lease.dirty = self.rng.u8(0..3) == 0;
            lease.broken = self.rng.u8(0..10) == 0;
            if depth < 2 && !self.is_over() && self.rng.u8(0..5) == 0 {
                self.acquire(depth + 1).await;
            }
            let end = self.end();
            give_back(&self.sim, self.me, lease, end).await;
        })
    }

    fn end(&mut self) -> End {
        let forgets = self.sim.plan.may_forget && !self.is_over();
        match self.rng.u8(0..20) {
            0..=4 => End::Released(usize::MAX),
            5..=6 => End::Released(self.rng.usize(0..3)),
            7..=8 => End::Discarded,
            9..=10 => End::Detached,
            11..=12 if forgets => End::Forgotten,
            _ => End::Dropped,
        }
    }

    /// Controls the whole pool.
    async fn control(&mut self) {
        match self.rng.u8(0..15) {
            0..=2 => self.resize(),
            3 => self.invalidate(),
            4 => {
                let over = self.pause();
                self.note(format_args!("invalidates over {over:?}"));
                self.pool.invalidate_over(over);
            }
            5 => self.knob(Knob::Suspend),
            6 => self.knob(Knob::Resume),
            7 => self.retain(),
            8 => self.knob(Knob::Reset),
            9 => self.knob(Knob::Trip),
            10 => self.knob(Knob::Probe),
            11 => self.knob(Knob::PauseUpkeep),
            12 => self.knob(Knob::ResumeUpkeep),
            13 => self.warm().await,
            _ if self.sim.plan.may_close => self.knob(Knob::Close),
            _ => self.look(),
        }
    }

    fn knob(&self, knob: Knob) {
        knobs::turn(&self.sim, &self.pool, Name(self.me), knob);
    }

    fn resize(&mut self) {
        let to = self.rng.usize(1..=5);
        self.note(format_args!("resizes to {to}"));
        if self.pool.resize(to).is_err() {
            return self.note("is refused: `min_size` or `min_idle` is larger");
        }
        resized(&self.sim, &self.pool, to);
    }

    fn invalidate(&self) {
        {
            let mut world = self.sim.world();
            world.note(Name(self.me), "invalidates");
            world.invalidated_at = world.tick;
        }
        self.pool.invalidate();
    }

    fn retain(&mut self) {
        let (keeps, panics) = (self.rng.bool(), self.rng.u8(0..8) == 0);
        self.note(format_args!("retains all: {keeps}, panics: {panics}"));
        let (sim, pool) = (&self.sim, &self.pool);
        // A panic on purpose.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            pool.retain(|thing| {
                let held = sim
                    .world()
                    .things
                    .get(&thing.serial)
                    .is_some_and(|thing| thing.holder.is_some());
                sim.world()
                    .expect(!held, "O2: `retain` looks at a resource that is held");
                if panics {
                    explode(Call::Check);
                }
                keeps
            });
        }));
    }

    async fn warm(&mut self) {
        self.note("warms up");
        let polls = if self.rng.bool() { usize::MAX } else { 2 };
        let told = match cut(polls, self.pool.warm()).await {
            None => "gives the warm-up up".to_owned(),
            Some(Ok(())) => "is warm".to_owned(),
            Some(Err(error)) => error.to_string(),
        };
        self.note(told);
    }

    /// Calls that only look at the pool. They must change nothing.
    fn look(&self) {
        let pool = self.pool.downgrade().upgrade();
        let leases = self.pool.leases().len();
        let mut world = self.sim.world();
        let (own, queued) = (world.leases.len(), world.queue.len());
        world.expect(
            (own..=own + queued).contains(&leases),
            "O5: the holders are not the clients with a lease or a grant",
        );
        drop(world);
        self.sim
            .world()
            .expect(pool.is_some(), "a pool with a handle is gone");
        self.note(format_args!("looks: {}", self.pool.health()));
    }
}
