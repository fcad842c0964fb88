//! Run: cargo run -p cenote-examples --example sql_transactions
//!
//! How do I run three repositories in one transaction?
//!
//! The repositories do not name the transaction. Their caller decides.

use std::error::Error;

use cenote_sqlx::Db;
use sqlx::{Error as SqlError, Sqlite};

struct Accounts(Db<Sqlite>);

impl Accounts {
    async fn take(&self, owner: &str, amount: i64) -> Result<(), SqlError> {
        let sql = "UPDATE accounts SET amount = amount - ? WHERE owner = ?";
        let taken = sqlx::query(sql).bind(amount).bind(owner);
        taken.execute(&self.0).await.map(drop)
    }

    async fn amount(&self, owner: &str) -> Result<i64, SqlError> {
        let sql = sqlx::query_scalar("SELECT amount FROM accounts WHERE owner = ?");
        sql.bind(owner).fetch_one(&self.0).await
    }
}

struct Stock(Db<Sqlite>);

impl Stock {
    /// Fails if there is none left, by a constraint of the table.
    async fn take_one(&self, item: &str) -> Result<(), SqlError> {
        let sql = "UPDATE stock SET pieces = pieces - 1 WHERE item = ?";
        sqlx::query(sql).bind(item).execute(&self.0).await.map(drop)
    }
}

struct Journal(Db<Sqlite>);

impl Journal {
    /// Runs in a savepoint inside a transaction, and in a transaction of its own otherwise.
    async fn note(&self, text: &str) -> Result<(), SqlError> {
        let insert = || {
            sqlx::query("INSERT INTO journal VALUES (?)")
                .bind(text)
                .execute(&self.0)
        };
        self.0.transaction(async || insert().await.map(drop)).await
    }

    async fn entries(&self) -> Result<Vec<String>, SqlError> {
        let sql = sqlx::query_scalar("SELECT text FROM journal");
        sql.fetch_all(&self.0).await
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url).build()?;
    let tables = "CREATE TABLE accounts (owner TEXT PRIMARY KEY, amount INTEGER NOT NULL);
                  CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL CHECK (pieces >= 0));
                  CREATE TABLE journal (text TEXT NOT NULL);
                  INSERT INTO accounts VALUES ('Ada', 100);
                  INSERT INTO stock VALUES ('chair', 1);";
    sqlx::raw_sql(tables).execute(&db).await?;
    let (accounts, stock, journal) = (Accounts(db.clone()), Stock(db.clone()), Journal(db.clone()));

    let buy = async || {
        accounts.take("Ada", 30).await?;
        journal.note("Ada pays for a chair").await?;
        stock.take_one("chair").await
    };
    let first = db.transaction(buy).await;
    let second = db.transaction(buy).await;

    println!("first: {first:?}\nsecond: {second:?}");
    assert!(first.is_ok() && second.is_err());
    // The second call found no chair, so its payment and its journal entry were undone.
    assert_eq!(accounts.amount("Ada").await?, 70);
    assert_eq!(journal.entries().await?.len(), 1);
    assert_eq!(db.pool().status().in_use, 0);
    Ok(())
}
