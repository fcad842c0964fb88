//! One of the six processes: it makes requests at the rate that it is told, whether or not earlier
//! ones are done, and tells what became of each.

use std::collections::BTreeSet;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::now;
use crate::event::{Event, Outcome};
use crate::pool::Pool;
use crate::system::System;

/// What the process is to be: its number, the URL and the system. A process that has it is one of
/// the six.
pub(crate) const VARIABLE: &str = "CENOTE_BENCH_FLEET_MEMBER";

/// What the process says when it is ready.
pub(crate) const READY: &str = "ready";

/// What precedes the text of an error.
pub(crate) const ERROR: &str = "error ";

/// So many requests may be under way, running or waiting. A request that finds more is shed.
const QUEUE: usize = 100;

/// The most texts of errors that a process tells.
const ERRORS: usize = 3;

/// How often requests that are due are begun, and how often their outcomes are told.
const TICK: Duration = Duration::from_millis(1);
const TELL: Duration = Duration::from_millis(20);

/// Runs until its input ends.
pub(crate) fn run(orders: &str) -> Result<(), String> {
    let mut words = orders.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (process, url, name) = (word().parse(), word(), word());
    let process = process.map_err(|_| format!("no number of a process: {orders}"))?;
    let system = System::by_name(name).ok_or_else(|| format!("no system `{name}`"))?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        // The process is a member of the fleet for as long as it has the handle.
        let (pool, _fleet) = Pool::open(system, process, url).await?;
        // A test harness does not end its own line.
        println!("\n{READY}");
        let (sender, rate) = watch::channel(0.0);
        // Ends with the input, and so does the load.
        std::thread::spawn(move || {
            for line in stdin().lock().lines().map_while(Result::ok) {
                sender.send_replace(line.parse().unwrap_or_default());
            }
        });
        Load::new(pool).run(rate).await;
        Ok(())
    })
}

/// What was not told yet, and the texts of errors that were.
#[derive(Default)]
struct Told {
    lines: String,
    errors: BTreeSet<String>,
}

impl Told {
    fn add(&mut self, at: f64, outcome: Outcome) {
        self.lines += &Event { at, outcome }.to_line();
        self.lines.push('\n');
    }

    /// Adds the text of an error once, and only the first few.
    fn add_error(&mut self, text: String) {
        if self.errors.len() < ERRORS && !self.errors.contains(&text) {
            self.lines += &format!("{ERROR}{text}\n");
            self.errors.insert(text);
        }
    }
}

struct Load {
    pool: Pool,
    under_way: Arc<AtomicUsize>,
    told: Arc<Mutex<Told>>,
}

impl Load {
    fn new(pool: Pool) -> Self {
        Self {
            pool,
            under_way: Arc::default(),
            told: Arc::default(),
        }
    }

    async fn run(self, mut rate: watch::Receiver<f64>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut next, mut tell_at) = (now(), now());
        while let Ok(changed) = rate.has_changed() {
            ticks.tick().await;
            let time = now();
            if changed {
                rate.mark_unchanged();
                next = time;
            }
            let pause = 1.0 / *rate.borrow();
            while next <= time && pause.is_finite() {
                self.request(next);
                next += pause;
            }
            if time >= tell_at {
                tell_at = time + TELL.as_secs_f64();
                self.tell();
            }
        }
    }

    /// Begins a request that was due at that time.
    fn request(&self, at: f64) {
        if self.under_way.load(Ordering::Relaxed) >= QUEUE {
            return lock(&self.told).add(at, Outcome::Shed);
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let (pool, told) = (self.pool.clone(), Arc::clone(&self.told));
        let under_way = Arc::clone(&self.under_way);
        tokio::spawn(async move {
            let called = pool.call().await;
            under_way.fetch_sub(1, Ordering::Relaxed);
            let mut told = lock(&told);
            match called {
                Ok(()) => told.add(at, Outcome::Served(now() - at)),
                Err(error) => {
                    told.add(at, Outcome::Failed);
                    told.add_error(error);
                }
            }
        });
    }

    fn tell(&self) {
        let lines = std::mem::take(&mut lock(&self.told).lines);
        // The parent may have gone. Then the input ends, too.
        let mut out = stdout().lock();
        let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}
