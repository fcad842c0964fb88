//! An engine in memory: for several pools of one process, and for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::cell::{Cell, Epoch};
use crate::engine::{Engine, EngineError, Snapshot};

/// Keeps the cell in this process. Its clones share the cell, and each member has one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_fleet::{Fleet, Memory};
///
/// let memory = Memory::new();
/// # let open = async || Ok::<_, &str>(());
/// let reads = cenote::Pool::from_fn(open).build()?;
/// let writes = cenote::Pool::from_fn(open).build()?;
/// let first = Fleet::on(memory.clone()).capacity(10).join(&reads).await?;
/// let second = Fleet::on(memory).capacity(10).join(&writes).await?;
///
/// assert!(first.status().share + second.status().share <= 10);
/// drop(writes.acquire().await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    nudges: watch::Sender<u64>,
    heard: watch::Receiver<u64>,
}

#[derive(Debug)]
struct State {
    version: u64,
    bytes: Option<Vec<u8>>,
}

impl Memory {
    /// Makes the engine of a new group.
    pub fn new() -> Self {
        let epoch = Epoch {
            origin: 0,
            nonce: fastrand::u64(..),
        };
        let (nudges, heard) = watch::channel(0);
        let state = State {
            version: 0,
            bytes: Some(Cell::new(epoch).encode()),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            nudges,
            heard,
        }
    }

    /// Replaces the value, as an accident or another program would. `None` wipes it.
    pub fn overwrite(&self, bytes: Option<Vec<u8>>) {
        let mut state = self.lock();
        state.version += 1;
        state.bytes = bytes;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine for Memory {
    type Version = u64;

    async fn read(&mut self) -> Result<Snapshot<u64>, EngineError> {
        let state = self.lock();
        Ok(Snapshot {
            origin: 0,
            version: state.version,
            bytes: state.bytes.clone(),
        })
    }

    async fn swap(&mut self, version: &u64, bytes: &[u8]) -> Result<bool, EngineError> {
        let mut state = self.lock();
        let is_won = state.version == *version;
        if is_won {
            state.version += 1;
            state.bytes = Some(bytes.to_vec());
        }
        Ok(is_won)
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        self.nudges.send_modify(|count| *count += 1);
        self.heard.mark_unchanged();
        Ok(())
    }

    async fn nudged(&mut self) {
        // The sender is in `self`, so the channel is open.
        let _ = self.heard.changed().await;
    }
}
