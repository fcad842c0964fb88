//! Models of the wake-up and hand-off paths: the core itself under shuttle, played in many orders. `cargo xtask model` runs them; without
//! the cfg `cenote_model` there is nothing here.
#![cfg(cenote_model)]

mod cancelling;
mod closing;
mod handing_over;
mod leaving;
mod oracle;
mod runtime;
mod timing_out;
mod trays;
mod whole;
mod world;

use std::env;

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

/// How many orders of each kind are tried if `CENOTE_MODEL_ROUNDS` does not say.
const ROUNDS: usize = 500;

/// A bug shows when so many switches come at the wrong moment. Three find nearly all, and more need more rounds.
const DEPTH: usize = 3;

/// A model that has more orders than this is not small.
const EVERY: usize = 50_000;

/// Plays `model` in random orders, and in orders that hold single threads up. If it fails, shuttle prints the order;
/// `CENOTE_MODEL_REPLAY` plays that one again.
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
    let played = play(DfsScheduler::new(Some(EVERY), false), model);
    assert!(played < EVERY, "the model has grown: there are more orders");
}

/// Answers with how many orders were played.
fn play(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.stack_size = 512 * 1024; // futures are deep where nothing is inlined
    Runner::new(scheduler, config).run(move || {
        cenote::begin();
        model();
    })
}

fn number(variable: &str) -> Option<usize> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("the variable is a number"))
}
