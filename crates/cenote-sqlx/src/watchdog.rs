//! The watchdog: fails statements whose server has died without a word.
//!
//! A statement that waits for its server registers its task with the [`Watch`] of its session, and
//! sets no timer. One task per handle exists while statements wait. It counts at which of its ticks
//! each session was still in the same wait. When a wait has lasted for `silent_after`, the task
//! opens a connection and looks up all silent sessions at once.
//!
//! # Invariants
//! - **W1 proof**: a statement fails only if the server that has its session says that the session
//!   is gone, or after two looks in a row that found something wrong: nothing answers, or the
//!   server waits for its client. Between both looks the task was polled, and then
//!   nothing arrived for `silent_after`.
//! - **W2 last word**: a statement whose answer has arrived succeeds, whatever the watchdog says,
//!   because its future is polled before the verdict is read.
//!
//! [`Watch::over`] keeps W2, and the tests of slow statements check both.

mod dialects;
mod session;
mod watch;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use cenote::Config;
use sqlx::{Connection, Error};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::builder::Builder;
use crate::dialect::{Dialect, Options};
use crate::template::{AskCredentials, connect};

pub(crate) use self::dialects::{Place, Watched};
pub(crate) use self::session::watched;
pub(crate) use self::watch::{Watch, over};

use self::dialects::{Found, View};
use self::watch::Tick;

/// The default of [`Builder::silent_after`].
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(30);

/// How many ticks make up `silent_after`. More ticks notice the end of that time sooner.
const TICKS: u32 = 4;

impl<DB: Dialect> Builder<DB> {
    /// Sets how long a statement waits for its server before the watchdog looks its session up.
    /// Default 30 s; `None`: never.
    ///
    /// A server that loses power, or a firewall that forgets a connection, closes nothing, and the
    /// statement would wait for ever. The watchdog asks over a connection of its own
    /// (`pg_stat_activity`, process list). It fails the statement ([`Class::Broken`]) if the server
    /// does not know the session any more. It also fails it if two looks in a row get no answer or
    /// find that the server waits for its client, while no byte arrives for `silent_after`. A
    /// statement that is only slow never fails. Statements through `&mut *lease` are not watched.
    ///
    /// The connection is one more than `max_size`. It exists while a look lasts, and serves all
    /// silent statements. Each connection of the pool costs one more query when it is opened.
    ///
    /// SQLite has no watchdog. There is none on a runtime without timers, behind a
    /// [transaction pooler](Builder::behind_transaction_pooler) and with
    /// [`cancel_on_server(false)`](Builder::cancel_on_server), because a session there is not that
    /// of its statement. If a new connection reaches another server, the session cannot be looked
    /// up, and the statement goes on; a primary of PostgreSQL counts as the successor of another
    /// one. Turn the watchdog off if one address leads to several primaries.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::postgres("postgres://app@localhost/shop");
    /// let db = db.silent_after(Duration::from_secs(10)).build()?;
    /// assert_eq!(db.pool().status().opened, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    ///
    /// [`Class::Broken`]: crate::Class::Broken
    pub fn silent_after(mut self, silent_after: impl Into<Option<Duration>>) -> Self {
        self.silent_after = silent_after.into();
        self
    }
}

/// The watchdog of one handle.
pub(crate) struct Watchdog<DB: Dialect> {
    silent_after: Duration,
    /// How long a look may take.
    limit: Duration,
    options: Options<DB>,
    credentials: Option<Arc<AskCredentials>>,
    sessions: Mutex<Vec<Weak<Watch<DB>>>>,
    /// Whether the task exists.
    awake: AtomicBool,
    task: Mutex<Option<AbortHandle>>,
}

/// A session that is silent: its watch, the number of its wait, and its place on the server.
type Silent<DB> = (Weak<Watch<DB>>, u64, Place);

impl<DB: Dialect> Watchdog<DB> {
    pub(crate) fn new(
        silent_after: Duration,
        config: &Config,
        options: &Options<DB>,
        credentials: &Option<Arc<AskCredentials>>,
    ) -> Self {
        Self {
            // The task must not spin.
            silent_after: silent_after.max(Duration::from_millis(TICKS.into())),
            limit: config.open_timeout.unwrap_or(silent_after) + config.check_timeout,
            options: options.clone(),
            credentials: credentials.clone(),
            sessions: Mutex::default(),
            awake: AtomicBool::new(false),
            task: Mutex::default(),
        }
    }

    /// Returns the watch of a new session, if its server can be asked about it later.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        connection: &mut DB::Connection,
    ) -> Result<Option<Arc<Watch<DB>>>, Error> {
        let place = match <DB as Watched>::place(connection).await {
            Ok(place) => place,
            // A server of another kind, which speaks the same protocol.
            Err(Error::Database(_) | Error::ColumnDecode { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(place.map(|place| {
            let watch = Arc::new(Watch::new(place, Arc::clone(self)));
            let mut sessions = lock(&self.sessions);
            sessions.retain(|watch| watch.strong_count() > 0);
            sessions.push(Arc::downgrade(&watch));
            watch
        }))
    }

    /// Starts the task, unless it exists.
    fn wake_up(self: &Arc<Self>) {
        if self.awake.load(Ordering::Acquire) || self.awake.swap(true, Ordering::AcqRel) {
            return;
        }
        let shift = Shift {
            dog: Arc::downgrade(self),
            period: self.silent_after / TICKS,
            over: false,
        };
        // Without a runtime the shift ends here, and the next wait tries again.
        if let Ok(runtime) = Handle::try_current() {
            // Tokio tells by a panic that a runtime has no timers.
            if catch_unwind(|| drop(sleep(Duration::ZERO))).is_err() {
                return shift.never_again();
            }
            let task = runtime.spawn(shift.run());
            *lock(&self.task) = Some(task.abort_handle());
        }
    }

    /// Counts this tick in every session that waits. Returns whether there is one, and the silent
    /// ones.
    fn tick(&self) -> (bool, Vec<Silent<DB>>) {
        let sessions = lock(&self.sessions).clone();
        let mut any = false;
        let mut silent = Vec::new();
        for weak in sessions {
            let Some(watch) = weak.upgrade() else {
                continue;
            };
            match watch.tick(TICKS) {
                Tick::Free => {}
                Tick::Waits => any = true,
                Tick::Silent(wait) => {
                    any = true;
                    silent.push((weak, wait, watch.place.clone()));
                }
            }
        }
        (any, silent)
    }

    fn any_waits(&self) -> bool {
        let sessions = lock(&self.sessions).clone();
        let mut watches = sessions.iter().filter_map(Weak::upgrade);
        watches.any(|watch| watch.is_waiting())
    }

    /// Looks these sessions up. The future does not keep the watchdog alive.
    fn look(
        &self,
        ids: Vec<i64>,
    ) -> impl Future<Output = Result<Option<View>, Error>> + Send + use<DB> {
        let (options, credentials) = (self.options.clone(), self.credentials.clone());
        async move {
            let mut connection = connect::<DB>(&options, credentials.as_deref()).await?;
            let view = <DB as Watched>::look(&mut connection, &ids).await;
            let _ = connection.close().await;
            view
        }
    }
}

impl<DB: Dialect> Drop for Watchdog<DB> {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// The work of the task. If a runtime drops it, the next wait starts another one.
struct Shift<DB: Dialect> {
    dog: Weak<Watchdog<DB>>,
    period: Duration,
    over: bool,
}

impl<DB: Dialect> Shift<DB> {
    async fn run(mut self) {
        loop {
            let began = now();
            sleep(self.period).await;
            if began.elapsed() < self.period / 2 {
                // A test has paused the clock, so that its time says nothing about a server.
                self.over = true;
                return;
            }
            let Some(dog) = self.dog.upgrade() else {
                return;
            };
            let (any, silent) = dog.tick();
            if !any && self.has_ended(&dog) {
                return;
            }
            if silent.is_empty() {
                continue;
            }
            let look = dog.look(silent.iter().map(|(_, _, place)| place.id).collect());
            let (limit, silent_after) = (dog.limit, dog.silent_after);
            drop(dog);
            let seen = Seen::of(timeout(limit, look).await, limit);
            for (watch, wait, place) in silent {
                if let Some(watch) = watch.upgrade() {
                    seen.tell(&watch, wait, &place, silent_after);
                }
            }
        }
    }

    /// Ends the shift without running it. No other one is started.
    fn never_again(mut self) {
        self.over = true;
    }

    /// Ends the shift, unless a session has begun to wait meanwhile. A session that begins to wait
    /// after the second look at all of them finds that there is no task.
    fn has_ended(&mut self, dog: &Watchdog<DB>) -> bool {
        dog.awake.store(false, Ordering::Release);
        self.over = !dog.any_waits() || dog.awake.swap(true, Ordering::AcqRel);
        self.over
    }
}

impl<DB: Dialect> Drop for Shift<DB> {
    fn drop(&mut self) {
        if let Some(dog) = self.dog.upgrade().filter(|_| !self.over) {
            dog.awake.store(false, Ordering::Release);
        }
    }
}

/// The result of a look.
enum Seen {
    /// The server answered, but cannot be asked: it refuses the connection or the query.
    Nothing,
    View(View),
    NoAnswer(String),
}

impl Seen {
    fn of(
        look: Result<Result<Option<View>, Error>, tokio::time::error::Elapsed>,
        limit: Duration,
    ) -> Self {
        match look {
            Err(_) => Self::NoAnswer(format!("no answer within {limit:?}")),
            Ok(Err(error @ Error::Io(_))) => Self::NoAnswer(error.to_string()),
            Ok(Ok(Some(view))) => Self::View(view),
            Ok(Ok(None) | Err(_)) => Self::Nothing,
        }
    }

    /// Tells a session that was silent for `silent` what was found.
    fn tell<DB: Dialect>(&self, watch: &Watch<DB>, wait: u64, place: &Place, silent: Duration) {
        let found = match self {
            Self::Nothing => Found::Fine,
            Self::View(view) => view.find(place),
            Self::NoAnswer(why) => {
                return watch.suspect(wait, || {
                    format!(
                        "the server does not answer: neither this statement for {silent:?}, nor \
                         two new connections ({why})"
                    )
                });
            }
        };
        match found {
            Found::Fine => watch.is_fine(wait),
            Found::Gone => watch.fail(
                wait,
                format!(
                    "the server does not know this session any more, and the statement got no \
                     answer for {silent:?}: the connection died silently"
                ),
            ),
            Found::Idle => watch.suspect(wait, || {
                format!(
                    "the server waits for this client, and nothing arrived from it for \
                     {silent:?}: the connection died silently"
                )
            }),
        }
    }
}

/// Real time, to notice a clock that a test has paused.
#[expect(
    clippy::disallowed_methods,
    reason = "compares tokio's clock with the real one"
)]
fn now() -> Instant {
    Instant::now()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, feature = "sqlite"))]
mod tests;
