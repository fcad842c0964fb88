//! Lanes: connections that many callers share, for commands that leave nothing behind.
//!
//! A lane is a session of the pool's annex whose slot is held for as long as the lane is there. So
//! lanes are opened under the time limits, the breaker and the reports of the pool. A caller first
//! gets one of `mux * lane_depth` *places*: that is the back-pressure. Then it takes the open lane
//! with the fewest commands in flight.

mod keeper;
mod lane;
mod places;
mod set;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote::Lease;
use cenote::status::UNKNOWN_SITE;
use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{sleep, timeout_at};

use crate::error::{from_acquire, is_broken, no_answer, no_lane};
use crate::manager::Redis;
use crate::session::{Answer, within};
use keeper::keep;
use lane::Lane;
use places::{NoPlace, Places};
use set::{Choice, Set};

/// After a failed open, the lanes that are open serve alone for this long.
const PAUSE: Duration = Duration::from_secs(1);

/// What became of an open. `None`: it is under way.
type Outcome = Option<Result<(), RedisError>>;

pub(crate) struct Lanes {
    /// Opens the lanes.
    pool: cenote::Pool<Redis>,
    places: Places,
    count: usize,
    response_timeout: Option<Duration>,
    set: Mutex<Set>,
}

impl Lanes {
    /// `pool` opens the lanes.
    pub(crate) fn new(
        pool: cenote::Pool<Redis>,
        count: usize,
        depth: usize,
        response_timeout: Option<Duration>,
    ) -> Self {
        let places = Places::new(count, depth, pool.config().max_waiters);
        Self {
            pool,
            places,
            count,
            response_timeout,
            set: Mutex::default(),
        }
    }

    /// Waits for a place and an open lane.
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue. An open that it began goes on.
    pub(crate) async fn board(self: &Arc<Self>) -> RedisResult<Ride<'_>> {
        // Mostly there is a place, and an open lane. Then no clock is read.
        let mut deadline = None;
        let place = match self.places.try_take() {
            Some(place) => place,
            None => {
                deadline = self.pool.deadline();
                self.wait(deadline).await?
            }
        };
        loop {
            let Choice { lane, start, wait } = self.set().choose(self.count);
            if let Some(report) = start {
                tokio::spawn(open_one(Arc::clone(self), report));
            }
            match (lane, wait) {
                (Some(lane), _) => {
                    return Ok(Ride {
                        lanes: self,
                        lane,
                        _place: place,
                    });
                }
                (None, Some(outcome)) => {
                    deadline = deadline.or_else(|| self.pool.deadline());
                    opened(outcome, deadline).await?;
                }
                (None, None) => unreachable!("bug: without a lane, an open is under way"),
            }
        }
    }

    async fn wait(&self, deadline: Option<Instant>) -> RedisResult<SemaphorePermit<'_>> {
        let limit = self.pool.config().acquire_timeout;
        let taken = self.places.take(self.pool.name(), deadline, limit).await;
        match taken {
            Ok(place) => Ok(place),
            Err(NoPlace::Full(error)) => Err(error),
            // The pool knows the right error for it.
            Err(NoPlace::Closed) => match self.pool.acquire_at(UNKNOWN_SITE, deadline).await {
                Ok(_) => Err(no_lane()),
                Err(error) => Err(from_acquire(error)),
            },
        }
    }

    /// Lets no more commands onto any lane that is open now.
    pub(crate) fn retire_all(&self) {
        let lanes = self.set().take_all();
        for lane in &lanes {
            lane.retire.notify_one();
        }
    }

    /// Returns how many commands are in flight on each lane.
    pub(crate) fn in_flight(&self) -> Vec<usize> {
        self.set().in_flight()
    }

    /// Returns how many callers wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.places.waiting()
    }

    /// Tells all callers that wait for a place. The pool is closed.
    pub(crate) fn close(&self) {
        self.places.close();
    }

    /// Opens a lane and puts it into use.
    async fn open(self: &Arc<Self>) -> RedisResult<()> {
        let opened = self.pool.acquire_at(UNKNOWN_SITE, self.pool.deadline());
        let opened = opened.await.map_err(from_acquire)?;
        let (session, slot) = Lease::hold_slot(opened);
        slot.label("a lane");
        let lane = Arc::new(Lane::new(session, slot));
        self.set().add(Arc::clone(&lane));
        tokio::spawn(keep(Arc::downgrade(self), lane, &self.pool.config()));
        Ok(())
    }

    /// Lets no more commands onto this lane. Those in flight are answered.
    fn retire(&self, lane: &Arc<Lane>) {
        let found = self.set().take(lane);
        drop(found);
        lane.retire.notify_one();
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keepers hold their lanes until they are told.
impl Drop for Lanes {
    fn drop(&mut self) {
        self.retire_all();
    }
}

/// One command's right to a lane.
pub(crate) struct Ride<'a> {
    lanes: &'a Lanes,
    lane: Arc<Lane>,
    _place: SemaphorePermit<'a>,
}

impl Ride<'_> {
    pub(crate) fn connection(&self) -> MultiplexedConnection {
        self.lane.session.connection.clone()
    }

    /// Waits for the answer, and judges the lane by it.
    pub(crate) async fn answer<T: Answer>(
        self,
        send: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let limit = self.lanes.response_timeout;
        let Some(answer) = within(limit, send).await else {
            // The commands behind this one would wait for it, too.
            self.lanes.retire(&self.lane);
            return Err(no_answer(limit));
        };
        if answer.as_ref().is_err_and(is_broken) {
            self.lane.session.wire.sever();
        } else if answer.as_ref().is_ok_and(Answer::is_read_only) {
            self.lanes.retire(&self.lane);
        }
        answer
    }
}

impl Drop for Ride<'_> {
    fn drop(&mut self) {
        self.lane.leave();
    }
}

/// Opens a lane, and tells all callers that wait for one.
async fn open_one(lanes: Arc<Lanes>, report: watch::Sender<Outcome>) {
    let outcome = lanes.open().await;
    let failed = outcome.is_err();
    if !failed {
        lanes.set().opened();
    }
    report.send_replace(Some(outcome));
    if failed {
        let lanes = {
            let weak = Arc::downgrade(&lanes);
            drop(lanes);
            sleep(PAUSE).await;
            weak.upgrade()
        };
        if let Some(lanes) = lanes {
            lanes.set().forget(&report);
        }
    }
}

/// Waits until an open is over.
async fn opened(
    mut outcome: watch::Receiver<Outcome>,
    deadline: Option<Instant>,
) -> RedisResult<()> {
    let over = outcome.wait_for(Option::is_some);
    let over = match deadline {
        Some(deadline) => timeout_at(deadline.into(), over)
            .await
            .map_err(|_| no_lane())?,
        None => over.await,
    };
    match over {
        Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
        // The task that opened is gone with its runtime. The next round starts another one.
        Err(_) => Ok(()),
    }
}
