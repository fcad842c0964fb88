//! S13: the same statements through pools of real database connections.

#[cfg(test)]
mod tests;

use crate::harness::bounded::Trouble;
use crate::harness::contender::Contender;
use crate::harness::effort::Effort;
use crate::harness::peer::Kind;
use crate::harness::results::{Figure, Line};
use crate::harness::rounds::{combined, in_turns};
use crate::harness::scenarios::LIMIT;
use crate::harness::sql::{Database, Entry, FLOORS, Home, Load, Work};
use crate::harness::stats::{maximum, median, minimum};

/// The work, the number of tasks, and the name of the part.
type Part = (Work, usize, &'static str);

/// Makes a part of each work for each number of tasks.
macro_rules! parts {
    ($database:literal, $($tasks:literal $word:literal),+) => {
        &[
            $((Work::One, $tasks, concat!($database, ", `SELECT 1`, ", $tasks, " ", $word)),)+
            $((Work::Mix, $tasks, concat!($database, ", mix, ", $tasks, " ", $word)),)+
        ]
    };
}

const PARTS: [(Database, &[Part]); 2] = [
    (
        Database::Postgres,
        parts!("PostgreSQL", 1 "task", 8 "tasks", 64 "tasks", 512 "tasks"),
    ),
    (
        Database::Sqlite,
        parts!("SQLite", 1 "task", 8 "tasks", 64 "tasks", 256 "tasks", 512 "tasks"),
    ),
];

/// Measures all parts, with the pools that support the database. If a database is missing, each
/// line says so and the run goes on.
pub(super) fn lines(scenario: &'static str, all: &[Contender], effort: Effort) -> Vec<Line> {
    let floors = floors(all);
    let mut lines = Vec::new();
    for (database, parts) in PARTS {
        let mut home = None;
        for part in parts.iter().copied() {
            // More tasks would wait for each other.
            let floors = floors.iter().filter(|_| part.1 == 1);
            let contenders = all.iter().chain(floors).copied();
            let contenders = contenders.filter(|contender| entry(contender, database).is_some());
            let contenders: Vec<Contender> = contenders.collect();
            if contenders.is_empty() {
                continue;
            }
            let outcomes = match home.get_or_insert_with(|| Home::make(database)) {
                Ok(home) => play((scenario, part), database, home, &contenders, effort),
                Err(error) => vec![Err(Trouble::Fails(error.clone())); contenders.len()],
            };
            lines.extend(contenders.iter().zip(outcomes).map(|(it, outcome)| Line {
                scenario,
                runtime: part.2,
                pool: it.name,
                outcome,
            }));
        }
    }
    lines
}

/// Returns connections without a pool, if floors were asked for.
fn floors(all: &[Contender]) -> Vec<Contender> {
    let asked = all.iter().find(|contender| contender.kind == Kind::Floor);
    let floor = |like: &Contender| FLOORS.map(|(name, sql)| Contender { name, sql, ..*like });
    asked.into_iter().flat_map(floor).collect()
}

fn entry(contender: &Contender, database: Database) -> Option<&'static Entry> {
    let mut entries = contender.sql.iter();
    entries.find(|entry| entry.0 == database)
}

fn play(
    (scenario, (work, tasks, name)): (&'static str, Part),
    database: Database,
    home: &Home,
    contenders: &[Contender],
    effort: Effort,
) -> Vec<Result<Vec<Figure>, Trouble>> {
    let rounds = effort.sql_rounds();
    let outcomes = in_turns((scenario, name), contenders, rounds, LIMIT, |it, turn| {
        let load = Load {
            work,
            tasks,
            lasts: effort.sql_round(),
            seed: effort.seed + turn as u64,
        };
        let url = home.url().to_owned();
        let round = entry(it, database).expect("bug: it was asked before").1;
        Box::new(move || round(url, load))
    });
    let figures = outcomes
        .into_iter()
        .map(|outcome| outcome.map(|played| with_spread(&played)));
    figures.collect()
}

/// Returns the median of each figure, and how far apart the rounds are in the first one.
fn with_spread(played: &[Vec<Figure>]) -> Vec<Figure> {
    let mut figures = combined(played, median);
    let first: Vec<f64> = played.iter().map(|round| round[0].1).collect();
    let spread = |apart: f64, middle: f64| 100.0 * apart / middle;
    let apart = maximum(&first).zip(minimum(&first));
    let spread = apart
        .zip(median(&first))
        .map(|((most, least), middle)| spread(most - least, middle));
    figures.push(("spread %", spread.unwrap_or(f64::NAN)));
    figures
}
