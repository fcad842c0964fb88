//! The streams of frames. Each topic keeps its newest frame only, already encoded, and all clients
//! of the topic share it. A client that is too slow misses frames, which are counted.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::body::{Body, Bytes};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::watched::Seen;

/// An event of the stream, as it is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) bytes: Bytes,
}

impl Frame {
    /// Encodes an event. JSON has no line breaks, so it fits in one line.
    pub(crate) fn new(number: u64, event: &str, data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).unwrap_or_default();
        let text = format!("id: {number}\nevent: {event}\ndata: {data}\n\n");
        Self {
            number,
            bytes: text.into(),
        }
    }
}

/// All clients that watch the same thing.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    frames: watch::Sender<Frame>,
    pub(crate) seen: Option<Seen>,
}

impl Topic {
    pub(crate) fn new(seen: Option<Seen>) -> Self {
        Self {
            frames: watch::Sender::default(),
            seen,
        }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.frames.receiver_count() > 0
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.frames.borrow().number + 1
    }

    pub(crate) fn send(&self, frame: Frame) {
        self.frames.send_replace(frame);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Frame> {
        self.frames.subscribe()
    }
}

/// The topics that exist: the list of all pools, and each pool that is watched.
#[derive(Debug)]
pub(crate) struct Topics {
    pub(crate) overview: Topic,
    pub(crate) pools: BTreeMap<u64, Topic>,
    /// Dropped at the end, which ends the recordings.
    pub(crate) recordings: watch::Sender<()>,
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            overview: Topic::new(None),
            pools: BTreeMap::new(),
            recordings: watch::Sender::default(),
        }
    }
}

/// One client of a topic.
pub(crate) struct Client {
    pub(crate) frames: watch::Receiver<Frame>,
    pub(crate) dropped: Arc<AtomicU64>,
    /// Its place among the clients, which becomes free with the stream.
    pub(crate) place: OwnedSemaphorePermit,
}

impl Client {
    /// Returns the body of the response: the first frame, and then those of the topic until it
    /// ends.
    pub(crate) fn into_body(self, first: Frame) -> Body {
        let start = (self, first.number, Some(first.bytes));
        Body::from_stream(stream::unfold(
            start,
            |(mut client, last, first)| async move {
                if let Some(first) = first {
                    return Some((Ok::<_, Infallible>(first), (client, last, None)));
                }
                let frame = client.next().await?;
                let missed = frame.number.saturating_sub(last + 1);
                client.dropped.fetch_add(missed, Relaxed);
                Some((Ok(frame.bytes), (client, frame.number, None)))
            },
        ))
    }

    /// Returns the newest frame that was not seen yet, or `None` at the end of the topic.
    async fn next(&mut self) -> Option<Frame> {
        self.frames.changed().await.ok()?;
        Some(self.frames.borrow_and_update().clone())
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
