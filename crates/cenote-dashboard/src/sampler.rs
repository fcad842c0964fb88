//! What all routes share, and the task that looks at the pools: several times a second while a page
//! is open, and otherwise as often as the history needs it.

use std::collections::btree_map::Entry;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cenote::registry::{self, AnyPool};
use tokio::runtime::Handle;
use tokio::sync::watch::Receiver;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::clock::{now, unix_ms};
use crate::dashboard::Dashboard;
use crate::fleet::Panel;
use crate::history::EVERY;
use crate::stream::{Client, Frame, Topic, Topics};
use crate::view::{Detail, FleetView, Head, Overview};
use crate::watched::{Past, Watched};

pub(crate) struct Shared {
    pub(crate) settings: Dashboard,
    /// Differs after a restart, so that a page knows that its numbers are of another process.
    instance: String,
    watched: Mutex<BTreeMap<u64, Arc<Watched>>>,
    fleets: Vec<Panel>,
    /// `None` after the end.
    topics: Mutex<Option<Topics>>,
    clients: Arc<Semaphore>,
    dropped: Arc<AtomicU64>,
    /// Wakes the task before its time, and outlives this value so that the task need not hold it.
    wake: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Why a stream was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoStream {
    /// There are as many clients as may be.
    Full,
    /// The page was ended.
    Ended,
    /// The pool is gone, or never was.
    NoPool,
}

impl Shared {
    pub(crate) fn new(settings: Dashboard) -> Arc<Self> {
        let clients = settings.max_clients.min(Semaphore::MAX_PERMITS);
        let fleets = settings.fleets.iter().cloned();
        let shared = Arc::new(Self {
            fleets: fleets.map(Panel::new).collect(),
            settings,
            instance: format!("{:016x}", RandomState::new().build_hasher().finish()),
            watched: Mutex::default(),
            topics: Mutex::new(Some(Topics::default())),
            clients: Arc::new(Semaphore::new(clients)),
            dropped: Arc::default(),
            wake: Arc::default(),
            task: Mutex::default(),
        });
        shared.look();
        shared
    }

    /// Starts the task, unless it runs. Without a runtime it is started by the next request.
    pub(crate) fn keep_running(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut task = lock(&self.task);
        let runs = task.as_ref().is_some_and(|task| !task.is_finished());
        if !runs && self.topics().is_some() {
            let (shared, wake) = (Arc::downgrade(self), Arc::clone(&self.wake));
            *task = Some(runtime.spawn(run(shared, wake)));
        }
    }

    /// Ends all streams and the task.
    pub(crate) fn end(&self) {
        let topics = self.topics().take();
        drop(topics);
        self.stop();
    }

    fn stop(&self) {
        let task = lock(&self.task).take();
        if let Some(task) = task {
            task.abort();
        }
        let watched = std::mem::take(&mut *lock(&self.watched));
        for one in watched.values() {
            one.pool.detach(&one.observer());
        }
    }

    /// Attaches a recorder to each new pool, and forgets the pools that are gone.
    ///
    /// # Race
    /// Several requests may look at the same time. A pool that was known before the list of living
    /// pools was read, and is not on it, is gone for good. A new pool may get several recorders:
    /// the first one stays, and the others are detached.
    pub(crate) fn look(&self) -> Vec<Arc<Watched>> {
        let known = lock(&self.watched).clone();
        let (old, new): (Vec<_>, Vec<_>) = registry::pools()
            .into_iter()
            .partition(|pool| known.contains_key(&pool.number()));
        let living: BTreeSet<u64> = old.iter().map(AnyPool::number).collect();
        let gone = known.keys().filter(|number| !living.contains(number));
        let mut attached = Vec::new();
        for pool in new {
            attached.extend(Watched::new(pool).map(Arc::new));
        }

        let mut watched = lock(&self.watched);
        for number in gone {
            watched.remove(number);
        }
        attached.retain(|one| match watched.entry(one.pool.number()) {
            Entry::Occupied(_) => true,
            Entry::Vacant(place) => {
                place.insert(Arc::clone(one));
                false
            }
        });
        let all = watched.values().cloned().collect();
        drop(watched);
        for one in attached {
            one.pool.detach(&one.observer());
        }
        all
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<Watched>> {
        self.look();
        lock(&self.watched).get(&number).cloned()
    }

    /// Wakes the task, so that pages show a change at once.
    pub(crate) fn refresh(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn overview(&self, frame: u64, past: Past) -> Overview {
        let pools = self.look();
        Overview {
            head: self.head(frame),
            pools: pools.iter().filter_map(|one| one.row(past)).collect(),
        }
    }

    /// Returns all of a pool, or `None` if it is gone.
    pub(crate) fn detail(&self, number: u64, frame: u64) -> Option<Detail> {
        let watched = self.find(number)?;
        let mut detail = watched.detail(self.head(frame), Past::All, None)?;
        detail.fleet = self.fleet_of(number, Past::All);
        Some(detail)
    }

    fn fleet_of(&self, pool: u64, past: Past) -> Option<FleetView> {
        let fleet = self.fleets.iter().find(|fleet| fleet.is_of(pool))?;
        Some(fleet.view(past))
    }

    /// Returns a client of the list of all pools, or of one pool, with its first frame.
    pub(crate) fn subscribe(&self, pool: Option<u64>) -> Result<(Client, Frame), NoStream> {
        let place = self.place()?;
        let frames = self.join(pool)?;
        let number = frames.borrow().number;
        let client = Client {
            frames,
            dropped: Arc::clone(&self.dropped),
            place,
        };
        let first = match pool {
            None => Frame::new(number, "snapshot", &self.overview(number, Past::All)),
            Some(pool) => {
                let detail = self.detail(pool, number).ok_or(NoStream::NoPool)?;
                Frame::new(number, "snapshot", &detail)
            }
        };
        self.refresh();
        Ok((client, first))
    }

    /// Returns a place for a recording, and what tells it that the page has ended.
    pub(crate) fn record(&self) -> Result<(OwnedSemaphorePermit, Receiver<()>), NoStream> {
        let place = self.place()?;
        let topics = self.topics();
        let topics = topics.as_ref().ok_or(NoStream::Ended)?;
        Ok((place, topics.recordings.subscribe()))
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, NoStream> {
        let place = Arc::clone(&self.clients).try_acquire_owned();
        place.map_err(|_| NoStream::Full)
    }

    /// Joins a topic under its lock, so that it is not forgotten meanwhile.
    fn join(&self, pool: Option<u64>) -> Result<Receiver<Frame>, NoStream> {
        let seen = match pool {
            None => None,
            Some(pool) => {
                let watched = self.find(pool).ok_or(NoStream::NoPool)?;
                Some(watched.seen().ok_or(NoStream::NoPool)?)
            }
        };
        let mut topics = self.topics();
        let topics = topics.as_mut().ok_or(NoStream::Ended)?;
        Ok(match pool {
            None => topics.overview.subscribe(),
            Some(pool) => {
                let topic = topics.pools.entry(pool);
                topic.or_insert_with(|| Topic::new(seen)).subscribe()
            }
        })
    }

    fn head(&self, frame: u64) -> Head {
        let most = self.settings.max_clients;
        Head {
            frame,
            time_ms: unix_ms(),
            instance: self.instance.clone(),
            version: env!("CARGO_PKG_VERSION"),
            interval_ms: u64::try_from(self.settings.interval.as_millis()).unwrap_or(u64::MAX),
            actions: self.settings.token.is_some(),
            clients: most.saturating_sub(self.clients.available_permits()),
            max_clients: most,
            dropped_frames: self.dropped.load(Relaxed),
        }
    }

    /// Looks at all pools once, and returns how long to wait before the next time.
    fn step(&self, pace: &mut Pace) -> Duration {
        let watched = self.look();
        let sampled = pace.is_due().map(|passed| {
            let time_ms = unix_ms();
            watched.iter().for_each(|one| one.sample(time_ms, passed));
            self.fleets.iter().for_each(|fleet| fleet.sample(time_ms));
        });
        let past = match sampled {
            Some(()) => Past::LastSample,
            None => Past::Nothing,
        };
        match self.publish(past) {
            true => self.settings.interval.min(pace.rest()),
            false => pace.rest(),
        }
    }

    /// Sends a frame to each topic that is watched. Returns whether there was one.
    fn publish(&self, past: Past) -> bool {
        let Some((overview, pools)) = self.watched_topics() else {
            return false;
        };
        let any = overview.is_watched() || !pools.is_empty();
        if overview.is_watched() {
            let number = overview.next_number();
            let view = self.overview(number, past);
            overview.send(Frame::new(number, "update", &view));
        }
        for (pool, topic) in pools {
            self.publish_pool(pool, &topic, past);
        }
        any
    }

    fn publish_pool(&self, pool: u64, topic: &Topic, past: Past) {
        let number = topic.next_number();
        let watched = lock(&self.watched).get(&pool).cloned();
        let now = watched.and_then(|watched| {
            // Read first, so that an event that comes meanwhile is sent twice and never missed.
            let seen = watched.seen()?;
            let mut detail = watched.detail(self.head(number), past, topic.seen)?;
            detail.fleet = self.fleet_of(pool, past);
            Some((seen, detail))
        });
        match now {
            Some((seen, detail)) => {
                topic.send(Frame::new(number, "update", &detail));
                if let Some(topics) = self.topics().as_mut() {
                    let topic = topics.pools.get_mut(&pool);
                    topic.into_iter().for_each(|topic| topic.seen = Some(seen));
                }
            }
            None => {
                topic.send(Frame::new(number, "gone", &self.head(number)));
                let gone = self.topics().as_mut().and_then(|it| it.pools.remove(&pool));
                drop(gone);
            }
        }
    }

    /// Returns the topics with clients, and forgets the pools that have none any more.
    fn watched_topics(&self) -> Option<(Topic, BTreeMap<u64, Topic>)> {
        let mut topics = self.topics();
        let topics = topics.as_mut()?;
        topics.pools.retain(|_, topic| topic.is_watched());
        Some((topics.overview.clone(), topics.pools.clone()))
    }

    fn topics(&self) -> MutexGuard<'_, Option<Topics>> {
        lock(&self.topics)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The task. It ends when the routes and handles are dropped.
async fn run(shared: Weak<Shared>, wake: Arc<Notify>) {
    let mut pace = Pace { last: None };
    loop {
        let Some(alive) = shared.upgrade() else {
            return;
        };
        let rest = alive.step(&mut pace);
        drop(alive);
        // Woken or not, it is time to look.
        let _ = timeout(rest, wake.notified()).await;
    }
}

/// When samples are taken.
struct Pace {
    last: Option<Instant>,
}

impl Pace {
    /// Returns the time since the sample before, if another one is due.
    fn is_due(&mut self) -> Option<Duration> {
        let now = now();
        let passed = self.last.map_or(EVERY, |last| now - last);
        if passed < EVERY {
            return None;
        }
        self.last = Some(now);
        Some(passed)
    }

    fn rest(&self) -> Duration {
        let passed = self.last.map_or(EVERY, |last| now() - last);
        EVERY.saturating_sub(passed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
