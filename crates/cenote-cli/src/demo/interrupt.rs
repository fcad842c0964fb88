//! Requests to end the demo: Ctrl-C, and on Unix also `kill` and a terminal that closes.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From the moment at which this value is made, a request no longer ends the program by itself. So
/// nothing stays behind on the server of a user.
#[derive(Debug)]
pub(super) struct Interrupt {
    #[cfg(unix)]
    signals: [Signal; 3],
}

#[cfg(unix)]
impl Interrupt {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            signals: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
        })
    }

    /// Waits for a request.
    pub(super) async fn heard(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Interrupt {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for a request.
    pub(super) async fn heard(&mut self) {
        // An error means that there are no such requests here.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
