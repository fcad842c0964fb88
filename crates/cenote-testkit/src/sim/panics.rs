//! Panics during a play: tokio keeps those of a task to itself, so they are caught by the hook. Ordered ones do not count.

use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Once};

use super::world::Sim;
use crate::backend::ORDERED;

thread_local! {
    /// What this thread plays.
    static PLAYING: RefCell<Option<Playing>> = const { RefCell::new(None) };
}

struct Playing {
    sim: Arc<Sim>,
    /// The first panic that nobody ordered.
    first: Option<String>,
}

/// While it lives, panics on this thread are kept and not reported.
#[derive(Debug)]
pub(super) struct Watch(());

impl Watch {
    pub(super) fn begin(sim: &Arc<Sim>) -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let report = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !keep(&info.to_string()) {
                    report(info);
                }
            }));
        });
        let sim = Arc::clone(sim);
        PLAYING.set(Some(Playing { sim, first: None }));
        Self(())
    }

    /// The first panic that nobody ordered.
    pub(super) fn end(self) -> Option<String> {
        PLAYING.take().and_then(|playing| playing.first)
    }
}

/// The first panic that nobody ordered, so far.
pub(super) fn seen() -> Option<String> {
    PLAYING.with_borrow(|playing| playing.as_ref()?.first.clone())
}

/// False if this thread does not play.
fn keep(text: &str) -> bool {
    PLAYING.with_borrow_mut(|playing| {
        let Some(Playing { sim, first }) = playing else {
            return false;
        };
        if text.contains(ORDERED) {
            return true;
        }
        match first {
            None => *first = Some(text.to_owned()),
            // One that panics while it unwinds ends the program, and nobody else will tell.
            Some(first) => {
                let seed = sim.plan.seed;
                let story = sim.story_so_far();
                eprintln!("{story}seed {seed}: a panic: {first}\nand another: {text}");
            }
        }
        true
    })
}
