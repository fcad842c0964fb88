//! The shop in a SQLite file of its own.

use std::path::PathBuf;

use rusqlite::{DropBehavior, TransactionBehavior};

use super::{ACCOUNTS, Books, RANGE, Sale, Shop, Sold};
use crate::demo::sqlite::{Connection, SqliteManager};
use crate::failure::Failure;

/// It runs on every open.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, amount INTEGER NOT NULL);
";

#[derive(Debug)]
pub(in crate::demo) struct SqliteShop(SqliteManager);

impl SqliteShop {
    pub(in crate::demo) fn new(file: PathBuf) -> Self {
        Self(SqliteManager::new(file, SCHEMA))
    }
}

impl Shop for SqliteShop {
    type Manager = SqliteManager;

    const OUTAGE: [&'static str; 2] = ["the database is gone", "the database is back"];

    fn manager(&self) -> &SqliteManager {
        &self.0
    }

    /// The first open has made the file, and switched it to its write-ahead log.
    async fn make(&self, _: &mut Connection) -> Result<(), Failure> {
        Ok(())
    }

    async fn stock(&self, connection: &mut Connection) -> Result<(), Failure> {
        let stocking = connection.run(|db| {
            let transaction = db.transaction()?;
            for account in 0..ACCOUNTS {
                transaction.execute("INSERT INTO account VALUES (?1, 0)", [account])?;
            }
            transaction.commit()
        });
        Ok(stocking.await?)
    }

    async fn read(&self, connection: &mut Connection, account: i64) -> Result<(), Failure> {
        let reading = connection.run(move |db| {
            db.prepare_cached("SELECT balance FROM account WHERE id = ?1")?
                .query_row([account], |row| row.get::<_, i64>(0))?;
            db.prepare_cached("SELECT sum(balance) FROM account WHERE id BETWEEN ?1 AND ?2")?
                .query_row([account, account + RANGE - 1], |row| row.get::<_, i64>(0))?;
            Ok(())
        });
        Ok(reading.await?)
    }

    async fn sell(&self, connection: &mut Connection, sale: Sale) -> Result<Sold, Failure> {
        let selling = connection.run(move |db| {
            // Locks at once. SQLite may refuse a read that becomes a write without waiting.
            let mut transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction
                .prepare_cached("UPDATE account SET balance = balance + ?2 WHERE id = ?1")?
                .execute([sale.account, sale.amount])?;
            transaction
                .prepare_cached("INSERT INTO entry (account, amount) VALUES (?1, ?2)")?
                .execute([sale.account, sale.amount])?;
            if sale.abandon {
                transaction.set_drop_behavior(DropBehavior::Ignore);
                return Ok(());
            }
            transaction.commit()
        });
        match selling.await {
            Ok(()) => Ok(Sold::Done),
            Err(error) if error.is_busy() => Ok(Sold::Busy),
            Err(error) => Err(error.into()),
        }
    }

    async fn books(&self, connection: &mut Connection) -> Result<Books, Failure> {
        let reading = connection.run(|db| {
            let entries = "SELECT count(*), coalesce(sum(amount), 0) FROM entry";
            let (entries, moved) =
                db.query_row(entries, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let balance = db.query_row("SELECT sum(balance) FROM account", [], |row| row.get(0))?;
            Ok(Books {
                entries,
                moved,
                balance,
            })
        });
        Ok(reading.await?)
    }

    /// The folder of the file is removed with the file.
    async fn remove(&self, _: &mut Connection) -> Result<(), Failure> {
        Ok(())
    }
}
