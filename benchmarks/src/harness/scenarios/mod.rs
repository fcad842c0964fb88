//! The scenarios by name, and the pools that take part in each.

pub mod blocking;
pub mod cold;
pub mod crowd;
pub mod growth;
pub mod heap;
pub mod instructions;
#[cfg(feature = "peers")]
mod sql;
pub mod storm;
pub mod timeouts;
pub mod trips;

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::harness::bounded::Trouble;
use crate::harness::child;
use crate::harness::contender::Contender;
use crate::harness::effort::Effort;
use crate::harness::peer::Kind;
use crate::harness::processes;
use crate::harness::progress::Progress;
use crate::harness::results::{Figure, Line};
use crate::harness::rounds::{Figures, Part, nanos_per_trip, repeated};
use crate::harness::runtime::Runtime;
use crate::harness::stats::{maximum, median};

use trips::{Load, Pause};

/// The longest round takes a second or two, so one that takes this long will never end.
const LIMIT: Duration = Duration::from_secs(20);

/// The results, or why nothing could be measured.
pub type Measured = Result<Vec<Line>, String>;

/// One scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub what: &'static str,
    /// Measures the scenario.
    pub run: fn(&'static str, &[Contender], Effort) -> Measured,
}

/// All scenarios in order.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "S1",
        what: "one task, 16 idle",
        run: |name, all, effort| in_processes(name, all, effort, 1),
    },
    Scenario {
        name: "S2",
        what: "16 tasks on 16, a yield after every eighth trip",
        run: |name, all, effort| Ok(trips(name, all, effort, 16, 16, Pause::NowAndThen)),
    },
    Scenario {
        name: "S2b",
        what: "16 tasks on 16, no yield: all workers hammer the pool",
        run: |name, all, effort| in_processes(name, all, effort, 16),
    },
    Scenario {
        name: "S3",
        what: "64 tasks on 8, a yield while holding",
        run: |name, all, effort| Ok(trips(name, all, effort, 64, 8, Pause::Holding)),
    },
    Scenario {
        name: "S4",
        what: "1,000 tasks on 10, a yield while holding: throughput, waits, fairness",
        run: |name, all, effort| {
            let (all, rounds) = (only(all, Kind::waits), effort.long_rounds());
            Ok(on_both(name, &all, rounds, median, |it, runtime, _| {
                let (round, watch) = (it.crowd, effort.watch());
                Box::new(move || round(runtime, watch))
            }))
        },
    },
    Scenario {
        name: "S5",
        what: "1,000 acquires at once on an exhausted pool, given up after 1 ms",
        run: |name, all, effort| {
            let all = only(all, Kind::waits);
            Ok(medians(name, &all, 5 * effort.rounds(), |it| it.timeouts))
        },
    },
    Scenario {
        name: "S6",
        what: "a storm of cancelled acquires, 64 tasks on 8; the worst of all storms",
        run: |name, all, effort| {
            let (all, rounds) = (only(all, Kind::is_pool), effort.long_rounds());
            Ok(on_both(name, &all, rounds, maximum, |it, runtime, turn| {
                let (round, seed) = (it.storm, effort.seed + turn as u64);
                Box::new(move || round(runtime, seed))
            }))
        },
    },
    Scenario {
        name: "S7",
        what: "instructions per trip, as in S1, by callgrind",
        run: instructions,
    },
    Scenario {
        name: "S8",
        what: "heap of an idle pool of 10, allocations per trip",
        run: |name, all, _| {
            let waiting = only(all, Kind::waits);
            let (alone, crowd) = ((name, "one task"), (name, "64 tasks on 8"));
            let mut lines = counted(alone, all, "idle", &heap::IDLE, Duration::ZERO);
            lines.extend(counted(
                crowd,
                &waiting,
                "crowd",
                &heap::CROWD,
                Duration::ZERO,
            ));
            Ok(lines)
        },
    },
    Scenario {
        name: "S9",
        what: "500 tasks at once on an empty pool of 10, a connect takes 50 ms",
        run: |name, all, effort| {
            let all = only(all, Kind::is_pool);
            Ok(medians(name, &all, effort.long_rounds(), |it| it.cold))
        },
    },
    Scenario {
        name: "S10",
        what: "a caller gives up after 10 ms of a 50 ms connect, and tries again",
        run: |name, all, effort| {
            let all = only(all, Kind::is_pool);
            Ok(medians(name, &all, effort.long_rounds(), |it| it.impatient))
        },
    },
    Scenario {
        name: "S11",
        what: "blocking callers, 16 idle; pools without a blocking call by `block_on`",
        run: |name, all, effort| Ok(blocking_callers(name, all, effort)),
    },
    Scenario {
        name: "S12",
        what: "1,000 pools of 10, all idle",
        run: |name, all, effort| {
            let pools = only(all, |kind| matches!(kind, Kind::Pool | Kind::Blocking));
            let part = (name, Runtime::CurrentThread.name());
            Ok(counted(part, &pools, "many", &heap::MANY, effort.watch()))
        },
    },
    #[cfg(feature = "peers")]
    Scenario {
        name: "S13",
        what: "statements on 10 real connections, two workers",
        run: |name, all, effort| Ok(sql::lines(name, all, effort)),
    },
    Scenario {
        name: growth::NAME,
        what: "trips in pools, queues and numbers of pools that grow",
        run: |name, all, effort| Ok(growth::lines(name, all, effort)),
    },
];

fn only(all: &[Contender], takes_part: fn(Kind) -> bool) -> Vec<Contender> {
    let all = all.iter().filter(|contender| takes_part(contender.kind));
    all.copied().collect()
}

/// Measures trips on 16 resources without a yield, as the median of several processes.
fn in_processes(
    scenario: &'static str,
    all: &[Contender],
    effort: Effort,
    tasks: usize,
) -> Measured {
    if effort.is_share {
        return Ok(trips(scenario, all, effort, tasks, 16, Pause::Never));
    }
    processes::medians(scenario, all, effort)
}

fn trips(
    scenario: &'static str,
    all: &[Contender],
    effort: Effort,
    tasks: usize,
    size: usize,
    pause: Pause,
) -> Vec<Line> {
    let load = Load { size, tasks, pause };
    let contenders = if tasks > size {
        only(all, Kind::waits)
    } else {
        all.to_vec()
    };
    let mut lines = Vec::new();
    for runtime in Runtime::ALL {
        let contenders = match runtime {
            Runtime::CurrentThread => contenders.clone(),
            Runtime::TwoWorkers => only(&contenders, |kind| kind != Kind::Local),
        };
        let part = Part {
            scenario,
            runtime: runtime.name(),
            travellers: tasks,
        };
        lines.extend(nanos_per_trip(part, &contenders, effort, |it, trips| {
            let round = it.trips;
            Box::new(move || round(runtime, load, trips))
        }));
    }
    lines
}

fn on_both(
    scenario: &'static str,
    contenders: &[Contender],
    rounds: usize,
    combine: fn(&[f64]) -> Option<f64>,
    play: impl Fn(&Contender, Runtime, usize) -> Figures,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for runtime in Runtime::ALL {
        let part = (scenario, runtime.name());
        lines.extend(repeated(
            part,
            contenders,
            rounds,
            LIMIT,
            combine,
            |it, turn| play(it, runtime, turn),
        ));
    }
    lines
}

type OnRuntime = fn(Runtime) -> Vec<Figure>;

/// Plays rounds that need nothing but a runtime, and takes the median of each figure.
fn medians(
    scenario: &'static str,
    contenders: &[Contender],
    rounds: usize,
    round: fn(&Contender) -> OnRuntime,
) -> Vec<Line> {
    on_both(scenario, contenders, rounds, median, |it, runtime, _| {
        let round = round(it);
        Box::new(move || round(runtime))
    })
}

fn blocking_callers(scenario: &'static str, all: &[Contender], effort: Effort) -> Vec<Line> {
    let contenders = only(all, |kind| matches!(kind, Kind::Pool | Kind::Blocking));
    let mut lines = Vec::new();
    for (threads, runtime) in [(1, "1 thread"), (2, "2 threads")] {
        let part = Part {
            scenario,
            runtime,
            travellers: threads,
        };
        lines.extend(nanos_per_trip(part, &contenders, effort, |it, trips| {
            let round = it.blocking;
            Box::new(move || round(threads, trips))
        }));
    }
    lines
}

fn instructions(scenario: &'static str, all: &[Contender], _: Effort) -> Result<Vec<Line>, String> {
    instructions::available()?;
    let mut progress = Progress::new(scenario, "callgrind", all.len());
    let lines = all.iter().map(|contender| {
        let counted = instructions::per_trip(contender);
        progress.step();
        Line {
            scenario,
            runtime: Runtime::CurrentThread.name(),
            pool: contender.name,
            outcome: counted.map(|count| vec![("instructions", count)]),
        }
    });
    Ok(lines.collect())
}

/// Measures each pool in a process of its own with a counting allocator.
fn counted(
    (scenario, runtime): (&'static str, &'static str),
    contenders: &[Contender],
    what: &str,
    names: &[&'static str],
    watch: Duration,
) -> Vec<Line> {
    let mut progress = Progress::new(scenario, runtime, contenders.len());
    let lines = contenders.iter().map(|contender| {
        let outcome = ask_heap(what, contender.name, watch);
        progress.step();
        Line {
            scenario,
            runtime,
            pool: contender.name,
            outcome: outcome.map(|values| names.iter().copied().zip(values).collect()),
        }
    });
    lines.collect()
}

fn ask_heap(what: &str, pool: &str, watch: Duration) -> Result<Vec<f64>, Trouble> {
    let own = env::current_exe().map_err(|error| Trouble::Fails(error.to_string()))?;
    let mut command = Command::new(own.with_file_name("bench-heap"));
    command.args([what, pool, &watch.as_millis().to_string()]);
    let said = child::run(&mut command, LIMIT)?.stdout;
    let said = String::from_utf8_lossy(&said);
    let values = said.lines().map(|line| line.parse().unwrap_or(f64::NAN));
    Ok(values.collect())
}
