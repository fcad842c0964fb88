//! The scheduler. Clients are tasks of a runtime with a paused clock, and the seed decides which of
//! them is polled next.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use fastrand::Rng;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::doings::Client;
use super::kinds::SimPool;
use super::plan::Kind;
use super::world::{Sim, Turns, now};
use super::{finale, oracle, panics};

/// Longer than anything that ends by itself after the faults have stopped.
const FOR_EVER: Duration = Duration::from_secs(600);

pub(super) fn run(sim: &Arc<Sim>) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        // The scheduler runs after every task.
        .event_interval(1)
        .on_thread_park({
            let sim = Arc::clone(sim);
            move || {
                if let Some(pool) = sim.watched() {
                    oracle::check_rest(&sim, &pool);
                }
            }
        })
        .build()
        .expect("a runtime without I/O needs nothing from the system");
    let played = async {
        sim.world().begin();
        let pool = build(sim);
        sim.watch(&pool);
        pool.begin();
        play(sim, pool).await;
        sim.abandon_orphans();
        sim.world().end();
    };
    match sim.plan.kind {
        Kind::Threads => runtime.block_on(played),
        Kind::OneThread => LocalSet::new().block_on(&runtime, played),
    }
}

fn build(sim: &Arc<Sim>) -> SimPool {
    let plan = &sim.plan;
    sim.note("plan", format_args!("{:?}", plan.config));
    sim.note(
        "plan",
        format_args!(
            "{:?}, hooks {} {}, strategy {:?}, for {:?}",
            plan.faults, plan.before_acquire, plan.before_release, plan.strategy, plan.kind
        ),
    );
    SimPool::build(sim)
}

async fn play(sim: &Arc<Sim>, pool: SimPool) {
    for me in 0..sim.plan.clients {
        let client = Client {
            sim: Arc::clone(sim),
            pool: pool.clone(),
            me,
            rng: Rng::with_seed(sim.plan.seed ^ (me as u64 + 1) << 32),
            began: now(),
        };
        pool.spawn(Turnstile {
            sim: Arc::clone(sim),
            pool: pool.clone(),
            me,
            inner: Box::pin(client.live()),
            waker: Ready::waker(sim, me, 0),
        });
    }
    if timeout(sim.plan.horizon, turns(sim, &pool)).await.is_err() {
        sim.note("scheduler", "the time is over");
    }
    finale::heal(sim, &pool);
    if timeout(FOR_EVER, turns(sim, &pool)).await.is_err() {
        sim.world().broke("O8: an acquire waits for ever");
    }
    if !sim.world().is_broken() {
        finale::run(sim, pool).await;
    }
}

/// Gives turns until every client is done or a promise is broken.
async fn turns(sim: &Arc<Sim>, pool: &SimPool) {
    poll_fn(|context| {
        oracle::check(sim, pool);
        let mut world = sim.world();
        world.tripping = false;
        if let Some(panic) = panics::seen() {
            world.broke(format_args!("a panic: {panic}"));
        }
        if world.is_broken() || world.turns.done == sim.plan.clients {
            return Poll::Ready(());
        }
        world.turns.scheduler = Some(context.waker().clone());
        if world.turns.ready.is_empty() {
            return Poll::Pending;
        }
        context.waker().wake_by_ref();
        if world.rngs.order.u8(0..100) >= sim.plan.lazy {
            let count = world.turns.ready.len();
            let place = world.rngs.order.usize(..count);
            let client = world.turns.ready.swap_remove(place);
            world.turns.admitted[client] = true;
            if let Some(task) = world.turns.tasks[client].take() {
                task.wake();
            }
        }
        Poll::Pending
    })
    .await;
}

impl Turns {
    /// Returns whether no client is ready and none is about to be polled.
    pub(super) fn are_over(&self) -> bool {
        self.ready.is_empty() && !self.admitted.contains(&true)
    }
}

/// Polls its client only after the scheduler has admitted it.
struct Turnstile {
    sim: Arc<Sim>,
    pool: SimPool,
    me: usize,
    inner: Pin<Box<dyn Future<Output = ()> + Send>>,
    waker: Waker,
}

impl Future for Turnstile {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut world = self.sim.world();
            let me = self.me;
            world.turns.tasks[me] = Some(context.waker().clone());
            if !std::mem::take(&mut world.turns.admitted[me]) {
                return Poll::Pending;
            }
            if world.rngs.order.bool() {
                world.turns.wakers[me] += 1;
                let number = world.turns.wakers[me];
                drop(world);
                self.waker = Ready::waker(&self.sim, me, number);
            }
        }
        let waker = self.waker.clone();
        let polled = self.inner.as_mut().poll(&mut Context::from_waker(&waker));
        oracle::check(&self.sim, &self.pool);
        if polled.is_ready() {
            let mut world = self.sim.world();
            world.turns.done += 1;
            if let Some(scheduler) = &world.turns.scheduler {
                scheduler.wake_by_ref();
            }
        }
        polled
    }
}

/// A waker that tells the scheduler that a client is ready. A client may be polled with another
/// waker each time, and only its last waker counts.
struct Ready {
    sim: Arc<Sim>,
    me: usize,
    number: u64,
}

impl Ready {
    fn waker(sim: &Arc<Sim>, me: usize, number: u64) -> Waker {
        let sim = Arc::clone(sim);
        Waker::from(Arc::new(Self { sim, me, number }))
    }
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        let mut world = self.sim.world();
        // A world that was emptied has no clients.
        if world.turns.wakers.get(self.me) != Some(&self.number) {
            return;
        }
        if !world.turns.ready.contains(&self.me) {
            world.turns.ready.push(self.me);
        }
        if let Some(scheduler) = &world.turns.scheduler {
            scheduler.wake_by_ref();
        }
    }
}
