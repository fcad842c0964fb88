//! The trace of a pool as a stream: every acquire for some seconds, as `cenote replay` reads it.

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use cenote_telemetry::trace::{Recording, Trace};
use futures_util::stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::routes::{no_stream, refusal};
use crate::sampler::{NoStream, Shared};

/// A day. A recording is limited by its bytes, too.
const LONGEST: u64 = 86_400;

/// About six million leases.
const LIMIT: u64 = 64 << 20;

/// How many blocks may be on their way to a client. If it is slower, events are lost and counted.
const BLOCKS: usize = 8;

/// `?seconds=N` says how long to record.
pub(crate) async fn trace(
    State(shared): State<Arc<Shared>>,
    Path(number): Path<String>,
    uri: Uri,
) -> Response {
    let query = uri.query().and_then(|query| query.strip_prefix("seconds="));
    let seconds = query.and_then(|seconds| seconds.parse().ok());
    let Some(seconds) = seconds.filter(|seconds| (1..=LONGEST).contains(seconds)) else {
        let text = "the query must be `seconds=N`, from 1 to 86400";
        return refusal(StatusCode::BAD_REQUEST, text);
    };
    let started = number.parse().map_err(|_| NoStream::NoPool);
    let started = started.and_then(|number| start(&shared, number, seconds));
    match started {
        Ok(stream) => {
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            (kind, stream.into_body()).into_response()
        }
        Err(no) => no_stream(no),
    }
}

fn start(shared: &Shared, number: u64, seconds: u64) -> Result<Stream, NoStream> {
    let (place, end) = shared.record()?;
    let watched = shared.find(number).ok_or(NoStream::NoPool)?;
    let (blocks, received) = channel(BLOCKS);
    let recording = Trace::to_writer(Blocks(blocks))
        .limit(LIMIT)
        .lasting(Duration::from_secs(seconds))
        .start_any(watched.pool.clone())
        .map_err(|_| NoStream::NoPool)?;
    Ok(Stream {
        received,
        end,
        recording,
        _place: place,
    })
}

/// Sends blocks to the response, from the thread of the recording.
struct Blocks(Sender<Bytes>);

impl Write for Blocks {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(block));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recording and its client. The fields are dropped in this order: the recording ends at once
/// when its blocks are not received any more.
struct Stream {
    received: Receiver<Bytes>,
    end: watch::Receiver<()>,
    recording: Recording,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut stream| async move {
            let block = stream.next().await?;
            Some((Ok::<_, Infallible>(block), stream))
        }))
    }

    /// Returns the next block, or `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            block = self.received.recv() => return block,
            // Nothing is ever sent: an error says that the page has ended.
            _ = self.end.changed() => self.recording.stop(),
        }
        self.received.recv().await
    }
}
