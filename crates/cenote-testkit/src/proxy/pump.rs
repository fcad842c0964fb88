//! One direction of a connection. It reads a chunk and, as the faults say, passes it on, holds it,
//! loses it or ends the connection.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

use super::faults::{Cut, Faults, Then};
use crate::clock::now;

/// The largest chunk.
const CHUNK: usize = 16 * 1024;

pub(super) struct Pump<'a> {
    /// The number of the connection, in the order of arrival.
    number: u64,
    lane: usize,
    faults: watch::Receiver<Faults>,
    delivered: &'a AtomicU64,
    passed: u64,
    /// The serial of the limit that is counted down, and the bytes that are left of it.
    limit: (u64, u64),
    /// Bytes were lost. The stream has a hole, so nothing may follow.
    deaf: bool,
}

/// What the faults do with a chunk.
enum Verdict {
    Pass { after: Duration, at_most: u64 },
    Wait,
    Lose,
    End(Cut),
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        number: u64,
        lane: usize,
        faults: watch::Receiver<Faults>,
        delivered: &'a AtomicU64,
    ) -> Self {
        Self {
            number,
            lane,
            faults,
            delivered,
            passed: 0,
            limit: (0, 0),
            deaf: false,
        }
    }

    /// Runs until the end of the stream was passed on, or the connection must end.
    pub(super) async fn run(
        mut self,
        mut from: ReadHalf<'_>,
        mut to: WriteHalf<'_>,
    ) -> Result<(), Cut> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = self.read(&mut from, &mut chunk).await?;
            let arrived = now();
            let mut rest = &chunk[..read];
            loop {
                let Some(at_most) = self.leave_to_pass(arrived).await? else {
                    self.deaf = true;
                    break;
                };
                if read == 0 {
                    return to.shutdown().await.map_err(|_| Cut::Reset);
                }
                let now = rest.len().min(usize::try_from(at_most).unwrap_or(CHUNK));
                to.write_all(&rest[..now]).await.map_err(|_| Cut::Reset)?;
                self.count(now as u64);
                rest = &rest[now..];
                if rest.is_empty() {
                    break;
                }
            }
            if read == 0 {
                // The end of the stream was lost, so the other side never hears of it.
                return Ok(());
            }
        }
    }

    /// Reads the next chunk. It also watches for a limit of zero bytes, which is reached without a
    /// chunk.
    async fn read(&mut self, from: &mut ReadHalf<'_>, chunk: &mut [u8]) -> Result<usize, Cut> {
        loop {
            if let Verdict::End(cut) = self.verdict() {
                return Err(cut);
            }
            tokio::select! {
                // A side that was reset takes the other side with it.
                read = from.read(chunk) => return read.map_err(|_| Cut::Reset),
                () = changed(&mut self.faults) => {}
            }
        }
    }

    /// Waits until bytes that arrived at `arrived` may pass. Returns how many may pass, or `None`
    /// if they are lost.
    async fn leave_to_pass(&mut self, arrived: Instant) -> Result<Option<u64>, Cut> {
        loop {
            let due = match self.verdict() {
                Verdict::End(cut) => return Err(cut),
                Verdict::Lose => return Ok(None),
                Verdict::Pass { after, at_most } if now() >= arrived + after => {
                    return Ok(Some(at_most));
                }
                Verdict::Pass { after, .. } => Some(arrived + after),
                Verdict::Wait => None,
            };
            tokio::select! {
                () = sleep_until(due) => {}
                () = changed(&mut self.faults) => {}
            }
        }
    }

    fn verdict(&mut self) -> Verdict {
        let faults = self.faults.borrow_and_update();
        let (lane, slow) = (faults.lanes[self.lane], faults.slow_start);
        let mut at_most = u64::MAX;
        let mut reached = None;
        if let Some(limit) = lane.limit {
            if self.limit.0 != limit.serial {
                self.limit = (limit.serial, limit.bytes);
            }
            at_most = self.limit.1;
            reached = Some(limit.then).filter(|_| at_most == 0);
        }
        match reached {
            Some(Then::Reset) => return Verdict::End(Cut::Reset),
            Some(Then::Close) => return Verdict::End(Cut::Close),
            _ if self.deaf || lane.lossy || reached == Some(Then::Lose) => return Verdict::Lose,
            _ if self.number < lane.deaf_before => return Verdict::Lose,
            _ if self.number < lane.frozen_before => return Verdict::Wait,
            _ if lane.stalled || reached == Some(Then::Stall) => return Verdict::Wait,
            _ => {}
        }
        let starting = self.number >= slow.from && self.passed < slow.bytes;
        let after = if starting {
            lane.delay.max(slow.delay)
        } else {
            lane.delay
        };
        Verdict::Pass { after, at_most }
    }

    fn count(&mut self, bytes: u64) {
        self.passed += bytes;
        self.limit.1 = self.limit.1.saturating_sub(bytes);
        self.delivered.fetch_add(bytes, Ordering::SeqCst);
    }
}

/// Waits until `due`. Without a time it waits for ever.
async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => pending().await,
    }
}

/// Waits for a change. It waits for ever if the proxy is gone: the same channel tells the owner of
/// the connection, which ends it.
async fn changed(faults: &mut watch::Receiver<Faults>) {
    if faults.changed().await.is_err() {
        pending::<()>().await;
    }
}
