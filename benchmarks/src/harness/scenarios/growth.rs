//! S15: whether a trip costs more in a larger pool, with more of it out, with more pools, or with a
//! longer queue.

pub mod opening;
pub mod patterns;
pub mod pools;
pub mod queue;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::harness::bounded::Trouble;
use crate::harness::contender::Contender;
use crate::harness::effort::Effort;
use crate::harness::peer::Kind;
use crate::harness::results::{Figure, Line};
use crate::harness::rounds::{QUIET, combined, in_turns};
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::{LIMIT, only};
use crate::harness::stats::median;

/// The name on the command line.
pub const NAME: &str = "S15";

/// The pool that has goals here.
pub const SUBJECT: &str = "cenote";

/// A table of all pools is too wide to be read, so only these take part.
pub const TAKE_PART: [&str; 6] = [
    SUBJECT,
    "deadpool",
    "bb8",
    "qp",
    "floor: semaphore + Vec",
    "floor: Mutex<VecDeque>",
];

/// A pool size, and the part of the pool that is out.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The size of the pool.
    pub size: usize,
    /// The part that is out all the time.
    pub percent: usize,
    /// The name in the results.
    pub name: &'static str,
}

impl Point {
    /// Returns how many resources are out. Each task needs one more.
    pub fn out(self, tasks: usize) -> usize {
        (self.size * self.percent / 100).min(self.size - tasks)
    }
}

macro_rules! points {
    ($runtime:literal, $($size:literal: $($percent:literal)*;)*) => {
        [$($(Point {
            size: $size,
            percent: $percent,
            name: concat!($runtime, ", ", $size, ", ", $percent, " % out"),
        },)*)*]
    };
    ($runtime:literal) => {
        // In a pool of ten, 99 % are as many as 90 %.
        points!($runtime,
            10: 0 50 90;
            100: 0 50 90 99;
            1000: 0 50 90 99;
            10000: 0 50 90 99;
        )
    };
}

/// The points of each runtime.
pub const POINTS: [(Runtime, [Point; 15]); 2] = [
    (Runtime::CurrentThread, points!("current-thread")),
    (Runtime::TwoWorkers, points!("2 workers")),
];

/// Numbers of pools that one thread uses in turn.
pub const POOLS: [(usize, &str); 5] = [
    (1, "1 pool"),
    (10, "10 pools"),
    (100, "100 pools"),
    (1_000, "1000 pools"),
    (10_000, "10000 pools"),
];

/// Numbers of queued waiters, by runtime.
pub const QUEUES: [(Runtime, [(usize, &str); 4]); 2] = [
    (
        Runtime::CurrentThread,
        [
            (100, "current-thread, 100 waiters"),
            (1_000, "current-thread, 1000 waiters"),
            (10_000, "current-thread, 10000 waiters"),
            (100_000, "current-thread, 100000 waiters"),
        ],
    ),
    (
        Runtime::TwoWorkers,
        [
            (100, "2 workers, 100 waiters"),
            (1_000, "2 workers, 1000 waiters"),
            (10_000, "2 workers, 10000 waiters"),
            (100_000, "2 workers, 100000 waiters"),
        ],
    ),
];

/// The name of the part that opens resources.
pub const OPENING: &str = "opening";

/// The rounds of a pool in this scenario.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Trips in all patterns.
    pub patterns: fn(Runtime, Point, Duration) -> Vec<Stretch>,
    /// Trips on so many pools in turn.
    pub pools: fn(usize, Duration) -> Vec<Stretch>,
    /// Trips by so many waiters.
    pub queue: fn(Runtime, usize, usize) -> Vec<Figure>,
    /// Opens, one after another.
    pub opening: fn() -> Vec<Figure>,
}

/// The result of trips for some time.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The pattern.
    pub name: &'static str,
    /// Nanoseconds per trip.
    pub nanos: f64,
    /// The part of its time for which its threads waited for a processor.
    pub noise: f64,
}

/// Measures all parts.
pub(super) fn lines(scenario: &'static str, all: &[Contender], effort: Effort) -> Vec<Line> {
    let mut all = only(all, |kind| kind != Kind::Blocking);
    all.retain(|contender| TAKE_PART.contains(&contender.name));
    let mut lines = Vec::new();
    for (runtime, points) in POINTS {
        for point in points {
            let rounds = effort.growth_rounds();
            let part = (scenario, point.name);
            lines.extend(stretches(part, &all, rounds, |it| {
                let (round, lasts) = (it.growth.patterns, effort.growth_stretch());
                Box::new(move || round(runtime, point, lasts))
            }));
        }
    }
    for (pools, name) in POOLS {
        lines.extend(stretches(
            (scenario, name),
            &all,
            effort.long_rounds(),
            |it| {
                let (round, lasts) = (it.growth.pools, 2 * effort.growth_stretch());
                Box::new(move || round(pools, lasts))
            },
        ));
    }
    let mut waiting = only(&all, Kind::waits);
    for (runtime, lengths) in QUEUES {
        for (waiters, name) in lengths {
            let part = (scenario, name);
            let trips = effort.queue_trips();
            let more = medians(part, &waiting, effort.queue_rounds(), |it| {
                let round = it.growth.queue;
                Box::new(move || round(runtime, waiters, trips))
            });
            // A pool that hangs in a short queue hangs in a long one too, and each hang takes its
            // time.
            waiting.retain(|it| {
                !more
                    .iter()
                    .any(|line| line.pool == it.name && line.outcome.is_err())
            });
            lines.extend(more);
        }
    }
    let pools = only(&all, Kind::is_pool);
    let opened = medians((scenario, OPENING), &pools, effort.long_rounds(), |it| {
        Box::new(it.growth.opening)
    });
    lines.extend(opened);
    lines
}

type Play<T> = Box<dyn FnOnce() -> Vec<T> + Send>;

/// Plays rounds of which only the quiet ones count. If most were noisy, all are played again.
fn stretches(
    part: (&'static str, &'static str),
    contenders: &[Contender],
    rounds: usize,
    play: impl Fn(&Contender) -> Play<Stretch>,
) -> Vec<Line> {
    let mut outcomes = in_turns(part, contenders, rounds, LIMIT, |it, _| play(it));
    if outcomes.iter().flatten().any(|played| is_noisy(played)) {
        let more = in_turns(part, contenders, rounds, LIMIT, |it, _| play(it));
        for (outcome, more) in outcomes.iter_mut().zip(more) {
            match (outcome, more) {
                (Ok(played), Ok(more)) => played.extend(more),
                (outcome @ Ok(_), Err(trouble)) => *outcome = Err(trouble),
                (Err(_), _) => {}
            }
        }
    }
    let figures = |played: Vec<Vec<Stretch>>| {
        let first = played.first().into_iter().flatten().enumerate();
        let nanos = |index| quiet_nanos(played.iter().map(|round| round[index]).collect());
        first
            .map(|(index, stretch)| (stretch.name, nanos(index)))
            .collect()
    };
    let outcomes = outcomes.into_iter().map(|outcome| outcome.map(figures));
    named(part, contenders, outcomes)
}

/// Returns whether fewer than half of the rounds were quiet.
fn is_noisy(played: &[Vec<Stretch>]) -> bool {
    let is_quiet = |round: &&Vec<Stretch>| round.iter().all(|stretch| stretch.noise <= QUIET);
    2 * played.iter().filter(is_quiet).count() < played.len()
}

/// Plays rounds that all count.
fn medians(
    part: (&'static str, &'static str),
    contenders: &[Contender],
    rounds: usize,
    play: impl Fn(&Contender) -> Play<Figure>,
) -> Vec<Line> {
    let outcomes = in_turns(part, contenders, rounds, LIMIT, |it, _| play(it));
    let figures = |played: Vec<Vec<Figure>>| combined(&played, median);
    named(
        part,
        contenders,
        outcomes.into_iter().map(|it| it.map(figures)),
    )
}

fn named(
    (scenario, runtime): (&'static str, &'static str),
    contenders: &[Contender],
    outcomes: impl Iterator<Item = Result<Vec<Figure>, Trouble>>,
) -> Vec<Line> {
    let lines = contenders.iter().zip(outcomes);
    let lines = lines.map(|(contender, outcome)| Line {
        scenario,
        runtime,
        pool: contender.name,
        outcome,
    });
    lines.collect()
}

/// Returns the median of the quiet stretches. If there are few, it is that of the quietest quarter.
fn quiet_nanos(mut stretches: Vec<Stretch>) -> f64 {
    stretches.sort_by(|one, other| one.noise.total_cmp(&other.noise));
    let quiet = stretches.iter().filter(|stretch| stretch.noise <= QUIET);
    let taken = quiet.count().max(stretches.len().div_ceil(4));
    stretches.truncate(taken);
    let nanos: Vec<f64> = stretches.iter().map(|stretch| stretch.nanos).collect();
    median(&nanos).unwrap_or(f64::NAN)
}
