//! Messages that the server sends without being asked, for a lease that has subscribed.

use std::sync::{Arc, Mutex, PoisonError};

use redis::PushInfo;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Where the driver of a connection puts messages. While no lease listens, they are dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Option<UnboundedSender<PushInfo>>>>);

impl Mailbox {
    pub(crate) fn put(&self, message: PushInfo) {
        let listener = self.listener().clone();
        if let Some(listener) = listener {
            // The lease may have dropped its receiver.
            let _ = listener.send(message);
        }
    }

    /// Returns the messages from now on. An earlier listener hears no more.
    pub(crate) fn listen(&self) -> UnboundedReceiver<PushInfo> {
        let (sender, receiver) = unbounded_channel();
        let before = self.listener().replace(sender);
        drop(before);
        receiver
    }

    /// Ends the stream of the listener.
    pub(crate) fn hang_up(&self) {
        let listener = self.listener().take();
        drop(listener);
    }

    fn listener(&self) -> std::sync::MutexGuard<'_, Option<UnboundedSender<PushInfo>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
