//! Models of wake-ups and hand-overs: the whole core under shuttle, played in many orders.
//! `cargo xtask model` runs them. Without the cfg `cenote_model` this file is empty.
#![cfg(cenote_model)]

mod cancelling;
mod closing;
mod handing_over;
mod leaving;
mod oracle;
mod probing;
mod reserving;
mod runtime;
mod timing_out;
mod trays;
mod whole;
mod world;

use std::env;

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

/// How many orders of each kind are played, unless `CENOTE_MODEL_ROUNDS` is set.
const ROUNDS: usize = 500;

/// How many switches between threads a bug needs at the wrong moments. Three find nearly all bugs,
/// and a greater depth needs more rounds.
const DEPTH: usize = 3;

/// A small model has fewer orders than this.
const MOST_ORDERS: usize = 50_000;

/// Plays `model` in random orders, and in orders that hold single threads up. If it fails, shuttle
/// prints the order, and `CENOTE_MODEL_REPLAY` plays that order again.
fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    if let Ok(order) = env::var("CENOTE_MODEL_REPLAY") {
        play(ReplayScheduler::new_from_encoded(&order), model);
        return;
    }
    let rounds = number("CENOTE_MODEL_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("CENOTE_MODEL_SEED").unwrap_or(0) as u64;
    play(RandomScheduler::new_from_seed(seed, rounds), model.clone());
    play(PctScheduler::new_from_seed(seed, DEPTH, rounds), model);
}

/// Plays a small `model` in every order there is.
fn exhaust(model: impl Fn() + Send + Sync + 'static) {
    if let Ok(order) = env::var("CENOTE_MODEL_REPLAY") {
        play(ReplayScheduler::new_from_encoded(&order), model);
        return;
    }
    let played = play(DfsScheduler::new(Some(MOST_ORDERS), false), model);
    assert!(played < MOST_ORDERS, "the model has too many orders");
}

/// Returns how many orders were played.
fn play(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    // Futures are deep where nothing is inlined.
    config.stack_size = 512 * 1024;
    Runner::new(scheduler, config).run(move || {
        cenote::begin();
        model();
    })
}

fn number(variable: &str) -> Option<usize> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("the variable is a number"))
}
