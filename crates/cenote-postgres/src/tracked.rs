//! Streams and sinks of a session. One that is dropped before its end leaves the session
//! interrupted, so that the next user does not wait for its rest.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::{Sink, Stream};
use tokio_postgres::{Error, Row};

use crate::state::Running;

/// A stream or a sink of the driver that borrows its session.
pub struct Tracked<'a, S> {
    /// The driver's streams cannot be moved once they are polled.
    inner: Pin<Box<S>>,
    /// Present until the end.
    running: Option<Running<'a>>,
}

/// The rows of a statement. [`Session::query_raw`](crate::Session::query_raw) returns it.
pub type RowStream<'a> = Tracked<'a, tokio_postgres::RowStream>;

/// The data of `COPY … TO STDOUT`. [`Session::copy_out`](crate::Session::copy_out) returns it.
pub type CopyOutStream<'a> = Tracked<'a, tokio_postgres::CopyOutStream>;

/// Takes the data of `COPY … FROM STDIN`. [`Session::copy_in`](crate::Session::copy_in) returns it.
pub type CopyInSink<'a, U> = Tracked<'a, tokio_postgres::CopyInSink<U>>;

impl<'a, S> Tracked<'a, S> {
    pub(crate) fn new(stream: S, running: Running<'a>) -> Self {
        Self {
            inner: Box::pin(stream),
            running: Some(running),
        }
    }

    fn end(&mut self, error: Option<&Error>) {
        if let Some(running) = self.running.take() {
            running.end(error);
        }
    }

    fn poll_item<T>(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, Error>>>
    where
        S: Stream<Item = Result<T, Error>>,
    {
        let next = ready!(self.inner.as_mut().poll_next(context));
        match &next {
            Some(Ok(_)) => {}
            Some(Err(error)) => self.end(Some(error)),
            None => self.end(None),
        }
        Poll::Ready(next)
    }
}

impl RowStream<'_> {
    /// Returns how many rows the statement has changed. `None` before the end of the stream.
    pub fn rows_affected(&self) -> Option<u64> {
        self.inner.rows_affected()
    }
}

impl Stream for RowStream<'_> {
    type Item = Result<Row, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(context)
    }
}

impl Stream for CopyOutStream<'_> {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(context)
    }
}

impl<U: Buf + Send + 'static> CopyInSink<'_, U> {
    /// Ends the copy, and returns the number of rows.
    pub async fn finish(mut self) -> Result<u64, Error> {
        let finished = self.inner.as_mut().finish().await;
        self.end(finished.as_ref().err());
        finished
    }
}

impl<U: Buf + Send + 'static> Sink<U> for CopyInSink<'_, U> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.as_mut().poll_ready(context)
    }

    fn start_send(mut self: Pin<&mut Self>, data: U) -> Result<(), Error> {
        self.inner.as_mut().start_send(data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.as_mut().poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let closed = ready!(self.inner.as_mut().poll_close(context));
        self.end(closed.as_ref().err());
        Poll::Ready(closed)
    }
}

impl<S> fmt::Debug for Tracked<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracked")
            .field("has_ended", &self.running.is_none())
            .finish_non_exhaustive()
    }
}
