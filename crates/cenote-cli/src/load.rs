//! The load of one task, its counts, and the final check of the database.
//!
//! A write moves an amount to an account and inserts an entry about it, in one transaction. So in
//! the end there must be as many entries as successful writes, and the entries must add up to the
//! balances.

use std::time::{Duration, Instant};

use cenote::{AcquireError, Lease, Pool};
use hdrhistogram::Histogram;
use rusqlite::{DropBehavior, TransactionBehavior};
use tokio::time::{interval, timeout};

use crate::demo::Failure;
use crate::sqlite::{Connection, SqliteError, SqliteManager};

/// The tables of the demo.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, amount INTEGER NOT NULL);
";
const ACCOUNTS: i64 = 1_000;
/// How many accounts a range sum reads.
const RANGE: i64 = 20;

/// One of this many operations writes.
const WRITES: u32 = 10;
/// One of this many writes is abandoned: its lease is dropped with the transaction open.
const ABANDONS: u32 = 50;
/// One of this many acquires is dropped after [`IMPATIENCE`] if it still waits.
const GIVES_UP: u32 = 100;
const IMPATIENCE: Duration = Duration::from_millis(1);
/// How often a connection is discarded, as if it had gone bad.
const DISCARD_EVERY: Duration = Duration::from_millis(250);

/// The counts of tasks. Each task has its own, so that they do not contend.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Transactions that were left open for the pool to roll back.
    pub(crate) abandoned: u64,
    /// Acquires that were dropped while they waited.
    pub(crate) given_up: u64,
    /// Writes that found the database locked for too long and did nothing.
    pub(crate) busy: u64,
    /// How long acquires took, in microseconds.
    pub(crate) waits: Histogram<u64>,
}

impl Tally {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            reads: 0,
            writes: 0,
            abandoned: 0,
            given_up: 0,
            busy: 0,
            // Two digits are precise enough for a reader. They keep the histogram small, and there
            // is one for each task. It grows as needed.
            waits: Histogram::new(2)?,
        })
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<(), Failure> {
        self.reads += other.reads;
        self.writes += other.writes;
        self.abandoned += other.abandoned;
        self.given_up += other.given_up;
        self.busy += other.busy;
        self.waits.add(&other.waits)?;
        Ok(())
    }

    pub(crate) fn operations(&self) -> u64 {
        self.reads + self.writes
    }
}

/// Makes the accounts, before the load starts. The first open also switches the file to its
/// write-ahead log.
pub(crate) async fn seed(pool: &Pool<SqliteManager>) -> Result<(), Failure> {
    let mut connection = pool.acquire().await?;
    connection
        .run(|db| {
            let transaction = db.transaction()?;
            for account in 0..ACCOUNTS {
                transaction.execute("INSERT INTO account VALUES (?1, 0)", [account])?;
            }
            transaction.commit()
        })
        .await?;
    Ok(())
}

/// Runs one task, which acquires, uses and returns connections until `ends`.
pub(crate) async fn work(pool: Pool<SqliteManager>, ends: Instant) -> Result<Tally, Failure> {
    let mut tally = Tally::new()?;
    let mut random = fastrand::Rng::new();
    loop {
        let started = now();
        if started >= ends {
            return Ok(tally);
        }
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
            Err(error) => return Err(error.into()),
        };
        let waited = started.elapsed().as_micros();
        tally.waits.record(u64::try_from(waited)?)?;

        let account = random.i64(0..ACCOUNTS);
        if random.u32(..WRITES) > 0 {
            read(&mut connection, account).await?;
            tally.reads += 1;
            continue;
        }
        let abandon = random.u32(..ABANDONS) == 0;
        let written = write(&mut connection, account, random.i64(1..=100), abandon).await;
        match written {
            Ok(()) if abandon => tally.abandoned += 1,
            Ok(()) => tally.writes += 1,
            Err(error) if error.is_busy() => tally.busy += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Discards a connection now and then, until it is dropped.
pub(crate) async fn discard(pool: Pool<SqliteManager>) {
    let mut turns = interval(DISCARD_EVERY);
    loop {
        turns.tick().await;
        // After a timeout there is nothing to discard. Any other error reaches the workers too.
        if let Ok(connection) = pool.acquire().await {
            Lease::discard(connection);
        }
    }
}

/// Reads one account and the sum of some.
async fn read(connection: &mut Connection, account: i64) -> Result<(i64, i64), SqliteError> {
    connection
        .run(move |db| {
            let balance = db
                .prepare_cached("SELECT balance FROM account WHERE id = ?1")?
                .query_row([account], |row| row.get(0))?;
            let sum = db
                .prepare_cached("SELECT sum(balance) FROM account WHERE id BETWEEN ?1 AND ?2")?
                .query_row([account, account + RANGE - 1], |row| row.get(0))?;
            Ok((balance, sum))
        })
        .await
}

/// Runs a short transaction. An abandoned one stops before the commit.
async fn write(
    connection: &mut Connection,
    account: i64,
    amount: i64,
    abandon: bool,
) -> Result<(), SqliteError> {
    connection
        .run(move |db| {
            // Locks at once. SQLite may refuse a read that becomes a write without waiting.
            let mut transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction
                .prepare_cached("UPDATE account SET balance = balance + ?2 WHERE id = ?1")?
                .execute([account, amount])?;
            transaction
                .prepare_cached("INSERT INTO entry (account, amount) VALUES (?1, ?2)")?
                .execute([account, amount])?;
            if abandon {
                transaction.set_drop_behavior(DropBehavior::Ignore);
                return Ok(());
            }
            transaction.commit()
        })
        .await
}

/// The contents of the database in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Books {
    /// How many writes left an entry.
    pub(crate) entries: i64,
    /// The sum of the entries.
    pub(crate) moved: i64,
    /// The sum of the balances.
    pub(crate) balance: i64,
}

/// Reads the database after the load has ended.
pub(crate) async fn read_books(pool: &Pool<SqliteManager>) -> Result<Books, Failure> {
    let mut connection = pool.acquire().await?;
    let books = connection
        .run(|db| {
            let (entries, moved) = db.query_row(
                "SELECT count(*), coalesce(sum(amount), 0) FROM entry",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let balance = db.query_row("SELECT sum(balance) FROM account", [], |row| row.get(0))?;
            Ok(Books {
                entries,
                moved,
                balance,
            })
        })
        .await?;
    Ok(books)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
