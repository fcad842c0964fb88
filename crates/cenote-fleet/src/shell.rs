//! The shell: a task that reads the cell, decides, swaps, and caps the pool.
//!
//! The task looks at the pool many times between two renewals. A round begins when a renewal is
//! due, when a nudge comes, when the callers of the pool want more than its cap, and while
//! connections are to be given back. While the callers want more than the cap, a round begins five
//! times a second, because the share of a process that dies may become free at any time. Whatever
//! the engine does, the pool is stopped when the lease is over, and it opens nothing while the
//! control connection is lost.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::cell::Cell;
use crate::clock::Clock;
use crate::engine::{Engine, EngineError, is_full};
use crate::error::RoundError;
use crate::governed::Governed;
use crate::member::{Member, Reading};
use crate::status::FleetStatus;
use crate::step::{Load, Step};

/// A round whose swap was lost begins again at once, so many times. Then the member waits until the
/// next look.
const TRIES: u32 = 5;

/// A member renews ten times in a TTL, and looks at its pool ten times between two renewals.
const RENEWALS: u32 = 10;
const LOOKS: u32 = 10;

/// A member looks at its pool at least so often, whatever its TTL is. A look is no call to the
/// engine.
const LOOK: Duration = Duration::from_millis(50);

/// The time between two rounds while there is more to do: it doubles from the first to the second.
const BUSY: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(100)];

/// A member that wants more than it has reads the cell so often.
const HUNGRY: Duration = Duration::from_millis(200);

/// A wish is forgotten when so much time has passed twice without one as large. It is long enough
/// for the next request of a busy service, and short enough for a member that waits.
const WISH: Duration = Duration::from_millis(400);

/// A call to the engine may take a fourth of the TTL, so that three can fail before the lease ends.
const CALLS: u32 = 4;

/// What callers of the pool are told when the task has ended before the member has left.
const ENDED: &str = "fleet: its task has ended, with its runtime or by a panic: join again";

pub(crate) struct Shell<E> {
    pub(crate) engine: E,
    pub(crate) reins: Reins,
    /// When the next renewal is due.
    renew_at: Duration,
    /// The last wish that the others know.
    told: u32,
    /// The largest wish of this stretch of time, and of the one before.
    peaks: [u32; 2],
    /// When this stretch began.
    peaks_at: Duration,
    /// More is to be done soon.
    busy: bool,
    /// The time until the next round if there is more to do.
    pace: Duration,
    /// When the last round began.
    round_at: Duration,
    /// After a failure the engine is left alone until then.
    rest_until: Duration,
    has_left: bool,
}

/// The pool, and the cap that the member has for it.
pub(crate) struct Reins {
    member: Member,
    pool: Arc<dyn Governed>,
    clock: Clock,
    ttl: Duration,
    status: watch::Sender<FleetStatus>,
}

impl Reins {
    pub(crate) fn new(
        member: Member,
        pool: Arc<dyn Governed>,
        ttl: Duration,
        status: watch::Sender<FleetStatus>,
    ) -> Self {
        let mut reins = Self {
            member,
            pool,
            clock: Clock::new(),
            ttl,
            status,
        };
        reins.pull();
        reins
    }

    /// Puts the present cap in force.
    fn pull(&mut self) {
        let before = self.status.borrow().share;
        let now = self.clock.now();
        let share = self.member.max_size(now);
        self.pool.cap(share, self.member.is_held());
        let has_lapsed = before > 0 && share == 0 && now >= self.member.lease_ends();
        if share != before {
            self.status
                .send_modify(|status| status.capped(share, has_lapsed));
        }
    }

    /// The control connection is lost. The pool opens nothing until the record is renewed.
    fn hold(&mut self) {
        if !self.member.is_held() {
            self.member.lost();
            let was_joined = u64::from(self.member.lease_ends() > Duration::ZERO);
            self.status
                .send_modify(|status| status.losses += was_joined);
            self.pull();
        }
    }

    /// Returns `time`, or the end of the lease if that comes before.
    fn until_lease_ends(&self, now: Duration, time: Duration) -> Instant {
        let ends = Some(self.member.lease_ends()).filter(|ends| *ends > now);
        self.clock.at(ends.map_or(time, |ends| ends.min(time)))
    }

    /// Returns whether nothing is left to give back but the record, which the others will remove.
    fn is_forgotten(&self) -> bool {
        self.clock.now() >= self.member.lease_ends() && self.pool.load().open == 0
    }

    /// Waits for the engine within a limit. The pool is stopped if the lease ends meanwhile.
    async fn call<T>(
        &mut self,
        answer: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, RoundError> {
        let limit = self.ttl / CALLS;
        let mut answer = pin!(timeout(limit, answer));
        let ends = self.clock.at(self.member.lease_ends());
        let answered = tokio::select! {
            answered = &mut answer => answered,
            () = sleep_until(ends), if self.clock.now() < self.member.lease_ends() => {
                self.pull();
                answer.await
            }
        };
        match answered {
            Ok(answer) => answer.map_err(RoundError::Engine),
            Err(_) => Err(RoundError::TimedOut(limit)),
        }
    }
}

impl<E: Engine> Shell<E> {
    pub(crate) fn new(engine: E, reins: Reins) -> Self {
        Self {
            engine,
            reins,
            renew_at: Duration::ZERO,
            told: 0,
            peaks: [0; 2],
            peaks_at: Duration::ZERO,
            busy: true,
            pace: BUSY[0],
            round_at: Duration::ZERO,
            rest_until: Duration::ZERO,
            has_left: false,
        }
    }

    /// Runs the first round. While the server is full, the round begins again, for a TTL: several
    /// processes may join at once, and only one place is kept for them.
    pub(crate) async fn join(&mut self) -> Result<(), RoundError> {
        let limit = self.reins.clock.now() + self.reins.ttl;
        loop {
            let outcome = self.round(true).await;
            let is_full = |error: &RoundError| match error {
                RoundError::Engine(error) => is_full(error),
                RoundError::TimedOut(_) | RoundError::Cell(_) | RoundError::Lost => false,
            };
            let waits = outcome.as_ref().is_err_and(is_full);
            if !waits || self.reins.clock.now() >= limit {
                return outcome;
            }
            sleep(jittered(HUNGRY)).await;
        }
    }

    /// Runs until the member has left. It leaves when `stay` is dropped or the pool is closed.
    pub(crate) async fn run(mut self, mut stay: oneshot::Receiver<()>) {
        let look = LOOK.min(self.reins.ttl / RENEWALS / LOOKS);
        let mut is_leaving = false;
        while !self.has_left {
            let now = self.reins.clock.now();
            let pause = if self.busy { self.pace } else { look };
            let next = self.reins.until_lease_ends(now, now + jittered(pause));
            let was_nudged = tokio::select! {
                biased;
                _ = &mut stay, if !is_leaving => {
                    is_leaving = true;
                    true
                }
                () = sleep_until(next) => false,
                () = self.engine.nudged() => true,
            };
            is_leaving |= self.reins.pool.is_closed();
            if is_leaving {
                self.reins.member.leave();
            }
            self.check_line();
            self.reins.pull();
            let (wishes, now) = (self.look(), self.reins.clock.now());
            let is_due = now >= self.renew_at || self.reins.member.is_held();
            let acts = is_due || was_nudged || wishes || self.busy || is_leaving;
            if acts && now >= self.rest_until {
                // A failure is in the status, and the next round begins after a rest.
                let _ = self.round(is_due).await;
            }
            self.has_left |= is_leaving && self.reins.is_forgotten();
        }
        self.reins.pull();
    }

    /// Returns whether it is time to tell the others that the callers of the pool want more than
    /// its cap, or to give a member that waits what they want no more.
    fn look(&mut self) -> bool {
        let (now, wants) = (self.reins.clock.now(), self.reins.pool.load().wants);
        if now >= self.peaks_at + WISH {
            (self.peaks, self.peaks_at) = ([0, self.peaks[0]], now);
        }
        self.peaks[0] = self.peaks[0].max(wants);
        let is_time = now >= self.round_at + HUNGRY;
        let status = self.reins.status.borrow();
        let mut others = status.members.iter().filter(|it| it.id != status.id);
        let wants_more = wants > status.share && (wants > self.told || is_time);
        let wants_less = self.wish(wants) < self.told && is_time;
        wants_more || wants_less && others.any(|it| it.wants > it.has)
    }

    /// Returns how many connections the callers want, now or a moment ago.
    fn wish(&self, wants: u32) -> u32 {
        wants.max(self.peaks[0]).max(self.peaks[1])
    }

    /// A pool must not open while the others may see that its member has no session.
    fn check_line(&mut self) {
        if !self.engine.is_connected() {
            self.reins.hold();
        }
    }

    /// Runs a round, and again while its swap is lost. A renewal swaps in any case.
    pub(crate) async fn round(&mut self, is_due: bool) -> Result<(), RoundError> {
        let mut outcome = Ok(false);
        for _ in 0..TRIES {
            outcome = self.try_round(is_due).await;
            if !matches!(outcome, Ok(false)) {
                break;
            }
        }
        let outcome = match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(RoundError::Lost),
            Err(error) => Err(error),
        };
        self.busy |= outcome.is_err();
        self.check_line();
        if let Err(error) = &outcome {
            if !matches!(error, RoundError::Lost) {
                let rest = jittered(self.reins.ttl / RENEWALS / 2);
                self.rest_until = self.reins.clock.now() + rest;
            }
            self.reins.status.send_modify(|status| status.failed(error));
        }
        outcome
    }

    /// Returns false if the swap was lost.
    async fn try_round(&mut self, is_due: bool) -> Result<bool, RoundError> {
        let asked = self.reins.clock.now();
        self.round_at = asked;
        self.check_line();
        self.reins.call(self.engine.connect()).await?;
        let read = self.reins.call(self.engine.read()).await?;
        let counts = self.reins.call(self.engine.count()).await?;
        let cell = read.bytes.map(|bytes| Cell::decode(&bytes)).transpose();
        let reading = Reading {
            asked,
            origin: read.origin,
            cell: cell.map_err(RoundError::Cell)?,
            counts,
        };
        let before = reading.cell.clone();
        let step = self.decide(reading);
        for id in &step.orders.fence {
            self.reins.call(self.engine.fence(*id)).await?;
        }
        let seen = match (is_due || step.orders.swap, before) {
            (false, Some(before)) => before,
            _ => {
                let bytes = step.cell.encode();
                let swap = self.engine.swap(&read.version, &bytes);
                let is_won = self.reins.call(swap).await?;
                self.swapped(asked, is_won, &step);
                if !is_won {
                    return Ok(false);
                }
                step.cell
            }
        };
        self.reins
            .status
            .send_modify(|status| status.round_ended(&seen));
        if step.orders.nudge {
            self.reins.call(self.engine.nudge()).await?;
        }
        Ok(true)
    }

    /// Decides a round, and puts a smaller cap in force.
    fn decide(&mut self, reading: Reading) -> Step {
        self.reins.pull();
        let load = self.reins.pool.load();
        let load = Load {
            wants: self.wish(load.wants),
            ..load
        };
        self.told = load.wants;
        let (now, nonce) = (self.reins.clock.now(), fastrand::u64(..));
        let step = self.reins.member.round(now, load, reading, nonce);
        self.reins.pull();
        if step.orders.invalidate {
            self.reins.pool.invalidate();
        }
        self.busy = step.orders.soon;
        self.pace = match step.orders.swap {
            true => BUSY[0],
            false => BUSY[1].min(2 * self.pace),
        };
        self.reins
            .status
            .send_modify(|status| status.decided(&step));
        step
    }

    fn swapped(&mut self, asked: Duration, is_won: bool, step: &Step) {
        self.reins.status.send_modify(|status| match is_won {
            true => status.swaps += 1,
            false => status.lost_swaps += 1,
        });
        if is_won {
            let now = self.reins.clock.now();
            self.reins.member.confirmed(asked, now, step);
            self.reins.pull();
            self.has_left = step.orders.left;
            self.renew_at = now + jittered(self.reins.ttl / RENEWALS);
        }
    }
}

impl<E> Drop for Shell<E> {
    /// A runtime that ends drops the task, and an engine that panics ends it. The share is not
    /// renewed any more then, so the pool must not use it.
    fn drop(&mut self) {
        let (member, pool) = (&self.reins.member, &self.reins.pool);
        let was_joined = member.lease_ends() > Duration::ZERO;
        pool.cap(0, false);
        pool.note((was_joined && !self.has_left).then_some(ENDED));
    }
}

/// Shortens or lengthens a time by up to a fifth, so that members do not act together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.8 + 0.4 * fastrand::f64())
}
