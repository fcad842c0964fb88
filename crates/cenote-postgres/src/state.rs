//! What is known about a session: what must be undone, and whether a statement is under way.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio_postgres::Error;

use crate::error::classify;
use crate::meaning::{Dirt, Effect, Meaning};

/// The server may still work on a statement whose future was dropped.
const INTERRUPTED: u8 = 8;
/// A statement has failed, so an open transaction may have failed.
const FAILED: u8 = 16;
/// The session must not be used again.
const DOOMED: u8 = 32;

/// Shared by all futures of one session, which may run at the same time.
#[derive(Debug, Default)]
pub(crate) struct State {
    bits: AtomicU8,
}

impl State {
    /// Records that a statement is sent.
    pub(crate) fn start(&self, meaning: Meaning) -> Running<'_> {
        if meaning.dirt != Dirt::NONE {
            self.set(meaning.dirt.0);
        }
        Running {
            state: self,
            meaning,
            ended: false,
        }
    }

    pub(crate) fn dirt(&self) -> Dirt {
        Dirt(self.bits() & Dirt::ANY.0)
    }

    /// Records that the connection was used outside of this crate.
    pub(crate) fn used_raw(&self) {
        self.set(Dirt::ANY.0 | INTERRUPTED | FAILED);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.bits() & (Dirt::ANY.0 | INTERRUPTED) == 0
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.bits() & INTERRUPTED != 0
    }

    /// Returns whether a transaction may have failed without its caller knowing.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.bits() & (INTERRUPTED | FAILED) != 0
    }

    /// Records that no statement is under way. Its transaction may have failed.
    pub(crate) fn settled(&self) {
        self.set(FAILED);
        self.clear(INTERRUPTED);
    }

    /// Records that the session cannot be trusted any more, and must be closed.
    pub(crate) fn doom(&self) {
        self.set(DOOMED);
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.bits() & DOOMED != 0
    }

    /// Records that no transaction is open.
    pub(crate) fn transaction_ended(&self) {
        self.clear(Dirt::TRANSACTION.0 | FAILED);
    }

    /// Records that the session is as good as new.
    pub(crate) fn cleaned(&self) {
        self.clear(!DOOMED);
    }

    fn bits(&self) -> u8 {
        self.bits.load(Ordering::Acquire)
    }

    fn set(&self, bits: u8) {
        self.bits.fetch_or(bits, Ordering::AcqRel);
    }

    fn clear(&self, bits: u8) {
        self.bits.fetch_and(!bits, Ordering::AcqRel);
    }
}

/// A statement under way. If it is dropped before its end, its session counts as interrupted.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    state: &'a State,
    meaning: Meaning,
    ended: bool,
}

impl Running<'_> {
    /// Records the end. After an error of the driver the server may still send rows.
    pub(crate) fn end(mut self, error: Option<&Error>) {
        match (error, self.meaning.effect) {
            (None, Effect::Keeps) => {}
            (None, Effect::Opens) => self.state.set(Dirt::TRANSACTION.0),
            (None, Effect::Ends) => self.state.transaction_ended(),
            (Some(error), _) => {
                self.state.set(FAILED);
                if classify(error).poisons() {
                    // The connection's task may not know it yet.
                    self.state.doom();
                } else if error.as_db_error().is_none() {
                    return;
                }
            }
        }
        self.ended = true;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.state.set(INTERRUPTED);
        }
    }
}
