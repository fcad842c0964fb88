//! The brake: stops the closure that runs on the thread of a session.
//!
//! A statement that runs is interrupted. A statement that is begun later, by the same closure, is
//! stopped by the handlers that [`watch`](crate::watch) installs: they ask
//! [`is_pulled`](Brake::is_pulled).
//!
//! # Race
//! The caller may give up at the moment at which the closure ends. One lock decides: either
//! [`pull`](Brake::pull) comes first, and [`let_go`](Brake::let_go) tells the thread to roll back,
//! or `let_go` comes first, and `pull` does nothing. So a commit is never interrupted.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::InterruptHandle;

#[derive(Default)]
pub(crate) struct Brake {
    /// Set while statements must stop. It mirrors `inside`, for handlers that must not lock.
    pulled: AtomicBool,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    stage: Stage,
    interrupt: Option<InterruptHandle>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
    #[default]
    Free,
    Running,
    Pulled,
}

impl Brake {
    /// Gives the brake the connection that it stops.
    pub(crate) fn fit(&self, interrupt: InterruptHandle) {
        self.inside().interrupt = Some(interrupt);
    }

    /// A closure is about to be sent to the thread.
    pub(crate) fn release(&self) {
        self.inside().stage = Stage::Running;
    }

    /// Stops the closure, if it has not ended.
    pub(crate) fn pull(&self) {
        let mut inside = self.inside();
        if inside.stage == Stage::Running {
            inside.stage = Stage::Pulled;
            self.pulled.store(true, Ordering::Relaxed);
            if let Some(interrupt) = &inside.interrupt {
                interrupt.interrupt();
            }
        }
    }

    /// The closure has ended. Returns whether the brake was pulled before.
    pub(crate) fn let_go(&self) -> bool {
        let mut inside = self.inside();
        self.pulled.store(false, Ordering::Relaxed);
        let stage = std::mem::take(&mut inside.stage);
        stage == Stage::Pulled
    }

    /// Returns whether the closure must stop.
    pub(crate) fn is_pulled(&self) -> bool {
        self.pulled.load(Ordering::Relaxed)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Brake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brake")
            .field("pulled", &self.pulled)
            .finish_non_exhaustive()
    }
}
