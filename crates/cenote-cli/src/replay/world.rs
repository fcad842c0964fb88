//! One replay: the real pool on a clock that stands still, and jumps from event to event.
//!
//! Tokio's timers tick in milliseconds, which is too coarse for leases of microseconds. So
//! arrivals, returns and opens are events of our own, and the clock is moved to each of them
//! exactly. Timers of the pool run in the gaps between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cenote::config::Nested;
use cenote::{AcquireError, Config, Lease, Manager, Pool};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, advance, sleep_until};

use super::figures::Figures;
use super::idle::Idle;
use super::load::{Call, Load};
use super::stretch::Case;
use crate::failure::Failure;

/// Longer gaps are slept through, so that timers of the pool run at their time.
const GAP: Duration = Duration::from_millis(2);

/// Every call has a limit, because a limit that is out of reach of the clock would be an error.
const LONGEST_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Plays the load with this size.
pub(super) fn play(load: Arc<Load>, size: usize, case: Case) -> Result<Figures, Failure> {
    let idle = Arc::new(Idle::default());
    let hook = Arc::clone(&idle);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || hook.wake())
        .build()?;
    runtime.block_on(async {
        // A task, because the runtime rests only while no task can run.
        tokio::spawn(async move {
            let mut player = Player::new(load, size, case, idle)?;
            player.warm().await?;
            player.run().await
        })
        .await?
    })
}

struct Player {
    load: Arc<Load>,
    pool: Pool<Backend>,
    world: Arc<World>,
    idle: Arc<Idle>,
}

impl Player {
    fn new(load: Arc<Load>, size: usize, case: Case, idle: Arc<Idle>) -> Result<Self, Failure> {
        let world = Arc::new(World {
            state: Mutex::new(State::new(case)?),
            more: Notify::new(),
        });
        let backend = Backend {
            world: Arc::clone(&world),
            opens: load.opens.clone(),
        };
        let config = &load.config;
        let pool = Pool::builder(backend).config(Config {
            name: Some("replay".to_owned()),
            max_size: size,
            min_size: config.min_size.min(size),
            min_idle: config.min_idle.min(size),
            // The trace has no checks, and its opens have succeeded.
            check_after_idle: None,
            open_timeout: None,
            // Nothing is wrong here that must be reported.
            leak_after: None,
            slow_acquire: None,
            nested: Nested::Allow,
            ..config.clone()
        });
        Ok(Self {
            // The same trace has the same result every time.
            pool: pool.seed(1).build()?,
            load,
            world,
            idle,
        })
    }

    /// Opens as many resources as there were at the start.
    async fn warm(&mut self) -> Result<(), Failure> {
        let count = self.load.total.min(self.pool.config().max_size);
        let mut waits = tokio::task::JoinSet::new();
        for _ in 0..count {
            let pool = self.pool.clone();
            waits.spawn(async move { pool.acquire_within(LONGEST_PATIENCE).await });
        }
        let mut leases = Vec::new();
        while leases.len() < count {
            self.idle.wait().await;
            self.end_due_opens().await;
            while let Some(lease) = waits.try_join_next() {
                leases.push(lease??);
            }
        }
        drop(leases);
        self.world.lock().begin();
        Ok(())
    }

    async fn end_due_opens(&self) {
        let next = self.world.lock().next();
        if let Some(at) = next {
            self.go_to(at).await;
            // Nothing is lent yet.
            drop(self.world.lock().end_due());
        }
    }

    async fn run(&mut self) -> Result<Figures, Failure> {
        let load = Arc::clone(&self.load);
        let mut calls = load.calls.iter().peekable();
        loop {
            let arrival = calls
                .peek()
                .map(|call| self.world.lock().began + call.arrival);
            let (due, waiting) = {
                let state = self.world.lock();
                (state.next(), state.waiting)
            };
            let Some(next) = arrival.into_iter().chain(due).min() else {
                if waiting == 0 {
                    return self.world.lock().end(load.lasted);
                }
                // The callers that are left get a resource or time out by a timer.
                self.rest(now() + LONGEST_PATIENCE).await;
                continue;
            };
            if !self.go_to(next).await {
                continue;
            }
            let ended = self.world.lock().end_due();
            drop(ended);
            while let Some(call) = calls.next_if(|call| self.has_come(call)) {
                self.arrive(call)?;
            }
            if self.world.lock().is_stirred() {
                self.idle.wait().await;
            }
        }
    }

    fn has_come(&self, call: &Call) -> bool {
        self.world.lock().began + call.arrival <= now()
    }

    /// Lends a resource to a caller, or lets it wait.
    fn arrive(&self, call: &Call) -> Result<(), Failure> {
        if let Some(lease) = self.pool.try_acquire()? {
            self.world.lock().grant(call, Duration::ZERO, lease);
            return Ok(());
        }
        let (world, call) = (Arc::clone(&self.world), *call);
        world.lock().waiting += 1;
        let patience = call.patience.min(LONGEST_PATIENCE);
        let (pool, arrived) = (self.pool.clone(), now());
        tokio::spawn(async move {
            let ended = pool.acquire_within(patience).await;
            let mut state = world.lock();
            state.waiting -= 1;
            match ended {
                Ok(lease) => state.grant(&call, now() - arrived, lease),
                Err(AcquireError::TimedOut { .. }) => state.figures.timed_out += 1,
                Err(_) => state.figures.refused += 1,
            }
            drop(state);
            world.more.notify_one();
        });
        Ok(())
    }

    /// Moves the clock. Returns false if something may have become due before that moment.
    async fn go_to(&self, at: Instant) -> bool {
        if at.saturating_duration_since(now()) > GAP && !self.rest(at - GAP).await {
            return false;
        }
        let left = at.saturating_duration_since(now());
        if !left.is_zero() {
            advance(left).await;
        }
        true
    }

    /// Lets the timers of the pool run until that moment. Returns false if something has become
    /// due.
    async fn rest(&self, until: Instant) -> bool {
        tokio::select! {
            biased;
            () = self.world.more.notified() => false,
            () = sleep_until(until) => true,
        }
    }
}

/// What the tasks of the pool share with the player.
struct World {
    state: Mutex<State>,
    /// A new event may be due before the one that is next.
    more: Notify,
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct State {
    began: Instant,
    events: BinaryHeap<Reverse<Event>>,
    /// Breaks ties between events, so that the first one made is the first one played.
    made: u64,
    waiting: usize,
    opening: usize,
    case: Case,
    figures: Figures,
}

impl State {
    fn new(case: Case) -> Result<Self, Failure> {
        Ok(Self {
            began: now(),
            events: BinaryHeap::new(),
            made: 0,
            waiting: 0,
            opening: 0,
            case,
            figures: Figures::new()?,
        })
    }

    /// What was opened so far was there when the recording began.
    fn begin(&mut self) {
        self.began = now();
        self.figures.opens = 0;
        self.figures.restart(self.began);
    }

    fn end(&mut self, lasted: Duration) -> Result<Figures, Failure> {
        let end = now().max(self.began + lasted);
        let mut figures = std::mem::replace(&mut self.figures, Figures::new()?);
        figures.end(end.saturating_duration_since(self.began), end);
        Ok(figures)
    }

    fn next(&self) -> Option<Instant> {
        self.events.peek().map(|event| event.0.at)
    }

    /// Returns whether tasks may have something to do now.
    fn is_stirred(&self) -> bool {
        self.waiting > 0 || self.opening > 0
    }

    fn add(&mut self, after: Duration, what: What) {
        self.made += 1;
        let (at, nth) = (now() + after, self.made);
        self.events.push(Reverse(Event { at, nth, what }));
    }

    fn grant(&mut self, call: &Call, waited: Duration, lease: Lease<Backend>) {
        self.figures.granted(now(), waited);
        let among = u32::try_from(self.figures.in_use()).unwrap_or(u32::MAX);
        let factor = self.case.factor(call.among, among);
        self.add(call.hold.mul_f64(factor), What::Return(lease));
    }

    /// Takes the events that are due. Opens end here; leases are returned, to be dropped without
    /// the lock.
    #[must_use]
    fn end_due(&mut self) -> Vec<Lease<Backend>> {
        let now = now();
        let mut leases = Vec::new();
        while self.next().is_some_and(|at| at <= now) {
            match self.events.pop().map(|event| event.0.what) {
                Some(What::Return(lease)) => {
                    self.figures.returned(now);
                    leases.push(lease);
                }
                Some(What::Opened(open)) => {
                    // The pool may have given the open up.
                    let _ = open.send(());
                }
                None => {}
            }
        }
        leases
    }
}

struct Event {
    at: Instant,
    nth: u64,
    what: What,
}

enum What {
    Return(Lease<Backend>),
    Opened(oneshot::Sender<()>),
}

impl Event {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.nth)
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

/// Opens resources that take as long as those of the recording.
struct Backend {
    world: Arc<World>,
    opens: Vec<Duration>,
}

impl Manager for Backend {
    type Resource = ();
    type Error = Infallible;

    async fn open(&self) -> Result<(), Infallible> {
        let (tell, told) = oneshot::channel();
        {
            let mut state = self.world.lock();
            let nth = state.figures.opens as usize + state.opening;
            state.opening += 1;
            let took = self.opens.get(nth % self.opens.len().max(1));
            state.add(took.copied().unwrap_or_default(), What::Opened(tell));
        }
        self.world.more.notify_one();
        // The sender is dropped only after the end.
        let _ = told.await;
        let mut state = self.world.lock();
        state.opening -= 1;
        state.figures.opened(now());
        Ok(())
    }

    async fn close(&self, (): ()) -> Result<(), Infallible> {
        self.world.lock().figures.closed(now());
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is the clock of a replay"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
