//! Notifications: what other sessions send to a channel that this session listens to.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::Notification;

/// The notifications of a session, as a stream. It ends when the connection does. It comes from
/// [`Session::notifications`](crate::Session::notifications).
///
/// Notifications that are not read yet are kept in memory.
#[derive(Debug)]
pub struct Notifications<'a> {
    receiver: UnboundedReceiver<Notification>,
    session: PhantomData<&'a ()>,
}

impl Notifications<'_> {
    /// Returns the next notification, or `None` after the end of the connection.
    ///
    /// # Cancel safety
    /// Dropping this future loses no notification.
    pub async fn recv(&mut self) -> Option<Notification> {
        self.receiver.recv().await
    }
}

impl Stream for Notifications<'_> {
    type Item = Notification;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Notification>> {
        self.receiver.poll_recv(context)
    }
}

/// Where the task of a connection sends notifications: to the last stream that was asked for.
#[derive(Debug)]
pub(crate) struct Outlet(Mutex<Reader>);

#[derive(Debug)]
enum Reader {
    Absent,
    Stream(UnboundedSender<Notification>),
    Closed,
}

impl Default for Outlet {
    fn default() -> Self {
        Self(Mutex::new(Reader::Absent))
    }
}

impl Outlet {
    pub(crate) fn open<'a>(&self) -> Notifications<'a> {
        let (sender, receiver) = unbounded_channel();
        let mut reader = self.lock();
        if !matches!(*reader, Reader::Closed) {
            *reader = Reader::Stream(sender);
        }
        Notifications {
            receiver,
            session: PhantomData,
        }
    }

    pub(crate) fn send(&self, notification: Notification) {
        let mut reader = self.lock();
        if let Reader::Stream(sender) = &*reader {
            if sender.send(notification).is_err() {
                *reader = Reader::Absent;
            }
        }
    }

    /// The connection has ended.
    pub(crate) fn close(&self) {
        *self.lock() = Reader::Closed;
    }

    fn lock(&self) -> MutexGuard<'_, Reader> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
