//! Runs work that may never end or may panic, so that one bad peer does not stop the run.

use std::any::Any;
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The work was not done within the limit.
    Hangs,
    /// The work panicked with this message.
    Fails(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hangs => f.write_str("hangs"),
            Self::Fails(words) => write!(f, "fails: {words}"),
        }
    }
}

impl Trouble {
    /// Reads the text that `Display` writes.
    pub(crate) fn read(text: &str) -> Self {
        match text.strip_prefix("fails: ") {
            Some(words) => Self::Fails(words.to_owned()),
            None => Self::Hangs,
        }
    }
}

/// Runs `work` on a thread of its own. Work that is not done within the limit is left behind,
/// because a task that waits for ever costs nothing.
pub fn bounded<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        // The receiver is gone after the limit.
        let _ = tell.send(work());
    });
    match told.recv_timeout(limit) {
        Ok(done) => Ok(done),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(Trouble::Hangs),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let words = thread.join().err().map(|panic| words(&*panic));
            Err(Trouble::Fails(words.unwrap_or_default()))
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}
