//! Panics during a play. tokio swallows the panics of a task, so a panic hook records them. Panics
//! on purpose do not count.

use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Once};

use super::world::Sim;
use crate::backend::ORDERED;

thread_local! {
    /// The play of this thread.
    static PLAYING: RefCell<Option<Playing>> = const { RefCell::new(None) };
}

struct Playing {
    sim: Arc<Sim>,
    /// The first panic that was not on purpose.
    first: Option<String>,
}

/// While it lives, panics on this thread are recorded and not printed.
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

    /// Returns the first panic that was not on purpose.
    pub(super) fn end(self) -> Option<String> {
        PLAYING.take().and_then(|playing| playing.first)
    }
}

/// Returns the first panic so far that was not on purpose.
pub(super) fn seen() -> Option<String> {
    PLAYING.with_borrow(|playing| playing.as_ref()?.first.clone())
}

/// Records a panic. Returns false if this thread does not play.
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
            // A panic while unwinding aborts the program, so it must be printed here.
            Some(first) => {
                let seed = sim.plan.seed;
                let story = sim.story_so_far();
                eprintln!("{story}seed {seed}: a panic: {first}\nand another: {text}");
            }
        }
        true
    })
}
