//! Plays many seeds of the simulation on all cores, or one seed with its story. `cargo xtask sim`
//! runs it.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::process::{self, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use cenote_testkit::sim::{Kind, Played, play_kind};

const USAGE: &str = "usage: sim [--local] [--seeds N] [--from K], or sim [--local] --seed S";

/// How many stories of broken promises are printed. A reader needs few.
const SHOWN: usize = 3;

/// How many seeds a thread takes at once.
const CHUNK: u64 = 64;

/// A seed is played in milliseconds, so one that takes this long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

const ON_TERMINAL: Duration = Duration::from_millis(200);
/// A log is read later, so it gets few progress lines.
const IN_LOG: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let count = args.len();
    args.retain(|arg| arg != "--local");
    let kind = match args.len() == count {
        true => Kind::Threads,
        false => Kind::OneThread,
    };
    let Some(order) = Order::read(&args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match order {
        Order::One(seed) => {
            let played = play_kind(seed, kind);
            println!("{played}");
            ExitCode::from(u8::from(played.broken.is_some()))
        }
        Order::Many { from, seeds } => Run::new(kind, from, seeds).run(),
    }
}

enum Order {
    One(u64),
    Many { from: u64, seeds: u64 },
}

impl Order {
    fn read(args: &[String]) -> Option<Self> {
        let (mut from, mut seeds, mut one) = (0, 10_000, None);
        for pair in args.chunks(2) {
            let [name, value] = pair else { return None };
            let value: u64 = value.replace('_', "").parse().ok()?;
            match name.as_str() {
                "--seed" => one = Some(value),
                "--seeds" => seeds = value,
                "--from" => from = value,
                _ => return None,
            }
        }
        Some(one.map_or(Self::Many { from, seeds }, Self::One))
    }
}

struct Run {
    kind: Kind,
    from: u64,
    seeds: u64,
    next: AtomicU64,
    done: AtomicU64,
    steps: AtomicU64,
    broken: Mutex<Vec<Played>>,
    /// The seed that each thread plays, and since when.
    playing: Mutex<HashMap<ThreadId, (u64, Instant)>>,
    started: Instant,
    on_terminal: bool,
}

impl Run {
    fn new(kind: Kind, from: u64, seeds: u64) -> Self {
        Self {
            kind,
            from,
            seeds,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            broken: Mutex::default(),
            playing: Mutex::default(),
            started: now(),
            on_terminal: io::stderr().is_terminal(),
        }
    }

    fn run(&self) -> ExitCode {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.work());
            }
            self.show_progress();
        });
        self.report()
    }

    fn work(&self) {
        loop {
            let first = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= self.seeds {
                return;
            }
            for seed in first..self.seeds.min(first + CHUNK) {
                let seed = self.from + seed;
                self.playing().insert(thread::current().id(), (seed, now()));
                let played = play_kind(seed, self.kind);
                self.steps.fetch_add(played.steps as u64, Ordering::Relaxed);
                if played.broken.is_some() {
                    self.broken().push(played);
                }
                self.done.fetch_add(1, Ordering::Relaxed);
            }
            self.playing().remove(&thread::current().id());
        }
    }

    fn broken(&self) -> std::sync::MutexGuard<'_, Vec<Played>> {
        let broken = self.broken.lock();
        broken.expect("nothing panics while it is held")
    }

    fn playing(&self) -> std::sync::MutexGuard<'_, HashMap<ThreadId, (u64, Instant)>> {
        let playing = self.playing.lock();
        playing.expect("nothing panics while it is held")
    }

    /// An endless loop in the pool cannot be interrupted. So a seed that hangs ends the program,
    /// and the program names the seed.
    fn end_if_it_hangs(&self) {
        let playing = self.playing();
        let hangs = |(_, since): &&(u64, Instant)| since.elapsed() > HANGS_AFTER;
        if let Some((seed, _)) = playing.values().find(hangs) {
            println!("seed {seed}: hangs, it plays for more than {HANGS_AFTER:?}");
            process::exit(1);
        }
    }

    fn show_progress(&self) {
        let pace = if self.on_terminal {
            ON_TERMINAL
        } else {
            IN_LOG
        };
        let mut shown = now();
        while self.done.load(Ordering::Relaxed) < self.seeds {
            thread::sleep(Duration::from_millis(20));
            self.end_if_it_hangs();
            if shown.elapsed() >= pace {
                shown = now();
                self.show();
            }
        }
        self.show();
        if self.on_terminal {
            let _ = writeln!(io::stderr());
        }
    }

    fn show(&self) {
        let done = self.done.load(Ordering::Relaxed);
        let percent = done * 100 / self.seeds.max(1);
        let bar = "#".repeat(percent as usize / 5);
        let line = format!(
            "[{bar:<20}] {percent:>3} %  {done} of {} schedules  {:.0}/s  {} broken",
            self.seeds,
            self.per_second(),
            self.broken().len()
        );
        // The run goes on if a progress line cannot be written.
        let _ = if self.on_terminal {
            write!(io::stderr(), "\r{line}\x1b[K")
        } else {
            writeln!(io::stderr(), "{line}")
        };
    }

    fn per_second(&self) -> f64 {
        self.done.load(Ordering::Relaxed) as f64 / self.started.elapsed().as_secs_f64().max(0.001)
    }

    fn report(&self) -> ExitCode {
        let mut broken = self.broken();
        // The shortest story is the easiest to read.
        broken.sort_by_key(|played| played.steps);
        for played in broken.iter().take(SHOWN) {
            println!("{played}\n");
        }
        for played in broken.iter() {
            let what = played.broken.as_deref().unwrap_or_default();
            println!("seed {} ({} steps): {what}", played.seed, played.steps);
        }
        println!(
            "{} schedules ({} to {}), {} steps, {:.0} schedules per second, {} broken",
            self.seeds,
            self.from,
            self.from + self.seeds.saturating_sub(1),
            self.steps.load(Ordering::Relaxed),
            self.per_second(),
            broken.len()
        );
        ExitCode::from(u8::from(!broken.is_empty()))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
fn now() -> Instant {
    Instant::now()
}
