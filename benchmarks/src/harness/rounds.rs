//! Rounds of all pools in turn, in an order that changes, so that noise hits all pools alike.

use std::time::Duration;

use crate::harness::bounded::{Trouble, bounded};
use crate::harness::contender::Contender;
use crate::harness::effort::Effort;
use crate::harness::progress::Progress;
use crate::harness::results::{Figure, Line};
use crate::harness::scenarios::trips::Took;
use crate::harness::stats::{median, minimum};

/// A round of trips takes some ten milliseconds, so one that takes this long will never end.
const TRIPS_LIMIT: Duration = Duration::from_secs(5);

/// A round counts if its threads waited for a processor for at most this part of its time.
pub(crate) const QUIET: f64 = 0.05;

/// With fewer quiet rounds, the quietest quarter of all rounds is used, and the table says so.
const ENOUGH: usize = 3;

/// Noisy rounds are played again. The total is at most this many times the number of rounds.
const PATIENCE: usize = 4;

/// The figures of [`nanos_per_trip`].
pub(crate) const FIGURES: [&str; 4] = ["ns", "ns min", "cores", "quiet rounds"];

/// The place of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// `S1` and so on.
    pub scenario: &'static str,
    /// The runtime of the tasks.
    pub runtime: &'static str,
    /// How many tasks or threads make trips at the same time.
    pub travellers: usize,
}

/// A round of a number of trips by each traveller.
pub type Play = Box<dyn FnOnce() -> Took + Send>;

/// Measures nanoseconds per trip, in rounds of equal time.
pub fn nanos_per_trip(
    part: Part,
    contenders: &[Contender],
    effort: Effort,
    play: impl Fn(&Contender, u32) -> Play,
) -> Vec<Line> {
    let mut progress = Progress::new(part.scenario, part.runtime, effort.rounds());
    let mut entrants: Vec<Entrant> = contenders.iter().map(|&it| Entrant::new(it)).collect();
    for entrant in &mut entrants {
        entrant.calibrate(part, effort, &play);
    }
    let mut random = fastrand::Rng::with_seed(effort.seed);
    for turn in 0..PATIENCE * effort.rounds() {
        let mut order: Vec<&mut Entrant> = entrants.iter_mut().collect();
        order.retain(|entrant| entrant.wants_more(effort));
        random.shuffle(&mut order);
        for entrant in order {
            entrant.play(part, &play);
        }
        if turn < effort.rounds() {
            progress.step();
        }
    }
    let lines = entrants.into_iter().map(|entrant| Line {
        scenario: part.scenario,
        runtime: part.runtime,
        pool: entrant.contender.name,
        outcome: entrant.figures(),
    });
    lines.collect()
}

/// A pool and its rounds so far.
struct Entrant {
    contender: Contender,
    /// Trips of each traveller in one round.
    trips: u32,
    rounds: Vec<Round>,
    trouble: Option<Trouble>,
}

struct Round {
    /// Nanoseconds per trip.
    nanos: f64,
    /// How many processors worked at once.
    cores: f64,
    /// The part of its time for which its threads waited for a processor.
    noise: f64,
}

impl Entrant {
    fn new(contender: Contender) -> Self {
        Self {
            contender,
            trips: 0,
            rounds: Vec::new(),
            trouble: None,
        }
    }

    /// Sets the number of trips so that all pools take equal time. A slow pool makes fewer trips.
    fn calibrate(&mut self, part: Part, effort: Effort, play: &impl Fn(&Contender, u32) -> Play) {
        self.trips = 2_000 / part.travellers as u32;
        self.play(part, play);
        if let Some(round) = self.rounds.pop() {
            let trips = effort.round().as_nanos() as f64 / round.nanos / part.travellers as f64;
            self.trips = trips.clamp(16.0, 1e6) as u32;
        }
    }

    fn play(&mut self, part: Part, play: &impl Fn(&Contender, u32) -> Play) {
        let all = f64::from(self.trips) * part.travellers as f64;
        match bounded(TRIPS_LIMIT, play(&self.contender, self.trips)) {
            Ok(took) => self.rounds.push(Round::new(took, all)),
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    fn wants_more(&self, effort: Effort) -> bool {
        self.trouble.is_none() && self.quiet() < effort.rounds()
    }

    fn quiet(&self) -> usize {
        let quiet = self.rounds.iter().filter(|round| round.noise <= QUIET);
        quiet.count()
    }

    fn figures(mut self) -> Result<Vec<Figure>, Trouble> {
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        let quiet = self.quiet();
        let taken = if quiet < ENOUGH {
            self.rounds.len().div_ceil(4)
        } else {
            quiet
        };
        self.rounds
            .sort_by(|one, other| one.noise.total_cmp(&other.noise));
        self.rounds.truncate(taken);
        let nanos: Vec<f64> = self.rounds.iter().map(|round| round.nanos).collect();
        let cores: Vec<f64> = self.rounds.iter().map(|round| round.cores).collect();
        let values = [
            median(&nanos).unwrap_or(f64::NAN),
            minimum(&nanos).unwrap_or(f64::NAN),
            median(&cores).unwrap_or(f64::NAN),
            quiet as f64,
        ];
        Ok(FIGURES.into_iter().zip(values).collect())
    }
}

impl Round {
    fn new(took: Took, trips: f64) -> Self {
        let wall = took.wall.as_secs_f64();
        Self {
            nanos: wall * 1e9 / trips,
            cores: took.processors.as_secs_f64() / wall,
            noise: took.kept_waiting.as_secs_f64() / wall,
        }
    }
}

/// A round that gives several figures at once.
pub type Figures = Box<dyn FnOnce() -> Vec<Figure> + Send>;

/// Plays some rounds with several figures each. `combine` makes one figure of that figure in all
/// rounds.
pub fn repeated(
    (scenario, runtime): (&'static str, &'static str),
    contenders: &[Contender],
    rounds: usize,
    limit: Duration,
    combine: fn(&[f64]) -> Option<f64>,
    play: impl Fn(&Contender, usize) -> Figures,
) -> Vec<Line> {
    let outcomes = in_turns((scenario, runtime), contenders, rounds, limit, play);
    let lines = contenders.iter().zip(outcomes);
    let lines = lines.map(|(contender, outcome)| Line {
        scenario,
        runtime,
        pool: contender.name,
        outcome: outcome.map(|played| combined(&played, combine)),
    });
    lines.collect()
}

/// Plays some rounds of each contender, and returns their results.
pub(crate) fn in_turns<T: Send + 'static>(
    (scenario, runtime): (&'static str, &'static str),
    contenders: &[Contender],
    rounds: usize,
    limit: Duration,
    play: impl Fn(&Contender, usize) -> Box<dyn FnOnce() -> T + Send>,
) -> Vec<Result<Vec<T>, Trouble>> {
    let mut progress = Progress::new(scenario, runtime, rounds * contenders.len());
    let mut outcomes: Vec<Result<Vec<T>, Trouble>> =
        contenders.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        // The order changes, so that one pool's leftovers do not always hit the same pool.
        fastrand::Rng::with_seed(round as u64).shuffle(&mut order);
        for turn in order {
            if let Ok(played) = &mut outcomes[turn] {
                match bounded(limit, play(&contenders[turn], round)) {
                    Ok(figures) => played.push(figures),
                    Err(trouble) => outcomes[turn] = Err(trouble),
                }
            }
            progress.step();
        }
    }
    outcomes
}

/// Combines the figures of all rounds by name, in the order of the first round.
pub(crate) fn combined(played: &[Vec<Figure>], combine: fn(&[f64]) -> Option<f64>) -> Vec<Figure> {
    let first = played.first().cloned().unwrap_or_default();
    let all = |index: usize| -> Vec<f64> { played.iter().map(|round| round[index].1).collect() };
    let one = |(index, (name, _))| (name, combine(&all(index)).unwrap_or(f64::NAN));
    first.into_iter().enumerate().map(one).collect()
}
