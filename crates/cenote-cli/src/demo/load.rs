//! The load of one task, and its counts.

use std::time::Duration;

use cenote::{AcquireError, Lease, Pool};
use hdrhistogram::Histogram;
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};

use super::shop::{ACCOUNTS, Sale, Shop, Sold};
use super::wired::Wired;
use crate::clock::now;
use crate::failure::Failure;

/// One of this many operations writes.
const WRITES: u32 = 10;
/// One of this many writes is abandoned: its lease is dropped with the transaction open.
const ABANDONS: u32 = 50;
/// One of this many acquires is dropped after [`IMPATIENCE`] if it still waits.
const GIVES_UP: u32 = 100;
const IMPATIENCE: Duration = Duration::from_millis(1);
/// A caller that is refused tries again after this time.
const AFTER_REFUSAL: Duration = Duration::from_millis(5);
/// How often a connection is discarded, as if it had gone bad.
const DISCARD_EVERY: Duration = Duration::from_millis(250);

/// The counts of tasks. Each task has its own, so that they do not contend.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Transactions that were left open for the pool to roll back.
    pub(super) abandoned: u64,
    /// Acquires that were dropped while they waited.
    pub(super) given_up: u64,
    /// Acquires that the pool refused, in the outage.
    pub(super) refused: u64,
    /// Writes that found the database locked for too long and did nothing.
    pub(super) busy: u64,
    /// How long acquires took, in microseconds.
    pub(super) waits: Histogram<u64>,
}

impl Tally {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            reads: 0,
            writes: 0,
            abandoned: 0,
            given_up: 0,
            refused: 0,
            busy: 0,
            // Two digits are precise enough for a reader. They keep the histogram small, and there
            // is one for each task. It grows as needed.
            waits: Histogram::new(2)?,
        })
    }

    pub(super) fn add(&mut self, other: &Self) -> Result<(), Failure> {
        self.reads += other.reads;
        self.writes += other.writes;
        self.abandoned += other.abandoned;
        self.given_up += other.given_up;
        self.refused += other.refused;
        self.busy += other.busy;
        self.waits.add(&other.waits)?;
        Ok(())
    }

    pub(super) fn operations(&self) -> u64 {
        self.reads + self.writes
    }
}

/// Runs one task, which acquires, uses and returns connections until the pool is closed. It pauses
/// while no more tasks than its number are allowed.
pub(super) async fn work<S: Shop>(
    pool: Pool<Wired<S>>,
    number: u32,
    mut allowed: watch::Receiver<u32>,
) -> Result<Tally, Failure> {
    let mut tally = Tally::new()?;
    let mut random = fastrand::Rng::new();
    loop {
        if allowed.wait_for(|count| *count > number).await.is_err() {
            return Ok(tally);
        }
        let started = now();
        let acquired = if random.u32(..GIVES_UP) == 0 {
            let Ok(acquired) = timeout(IMPATIENCE, pool.acquire()).await else {
                tally.given_up += 1;
                continue;
            };
            acquired
        } else {
            pool.acquire().await
        };
        let mut connection = match acquired {
            Ok(lease) => lease,
            // The pool counts these, and the load goes on.
            Err(AcquireError::TimedOut(_)) => continue,
            Err(AcquireError::Closed { .. }) => return Ok(tally),
            Err(AcquireError::Open { .. } | AcquireError::Unavailable(_)) => {
                tally.refused += 1;
                sleep(AFTER_REFUSAL).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let waited = started.elapsed().as_micros();
        tally.waits.record(u64::try_from(waited)?)?;

        let (shop, account) = (&pool.manager().shop, random.i64(0..ACCOUNTS));
        if random.u32(..WRITES) > 0 {
            shop.read(&mut connection, account).await?;
            tally.reads += 1;
            continue;
        }
        let sale = Sale {
            account,
            amount: random.i64(1..=100),
            abandon: random.u32(..ABANDONS) == 0,
        };
        match shop.sell(&mut connection, sale).await? {
            Sold::Done if sale.abandon => tally.abandoned += 1,
            Sold::Done => tally.writes += 1,
            Sold::Busy => tally.busy += 1,
        }
    }
}

/// Discards a connection now and then while tasks are allowed, until it is dropped.
pub(super) async fn discard<S: Shop>(pool: Pool<Wired<S>>, mut allowed: watch::Receiver<u32>) {
    let mut turns = interval(DISCARD_EVERY);
    loop {
        turns.tick().await;
        if allowed.wait_for(|count| *count > 0).await.is_err() {
            return;
        }
        // After a timeout there is nothing to discard. Any other error reaches the workers too.
        if let Ok(connection) = pool.acquire().await {
            Lease::discard(connection);
        }
    }
}
