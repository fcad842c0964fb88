//! Run: cargo run -p cenote-examples --example sql_transactional
//!
//! How do I make a function transactional?
//!
//! With one line above it. The functions that it calls are part of the transaction.

use std::error::Error;
use std::fmt;

use cenote_sqlx::{Db, transactional};
use sqlx::Sqlite;

struct Shop {
    db: Db<Sqlite>,
}

impl Shop {
    /// Runs as a whole or not at all, and again after a conflict with others.
    #[transactional(self.db, retry)]
    async fn order(&self, item: &str, pieces: i64) -> Result<i64, Problem> {
        let order = self.write_order(item, pieces).await?;
        if self.note(&format!("{pieces} x {item}")).await.is_err() {
            println!("  the note is missing, but the order goes on");
        }
        if self.take(item, pieces).await? < 0 {
            return Err(Problem::SoldOut); // undoes the order, the note and the update of the stock
        }
        Ok(order)
    }

    /// Inside `order` a failure undoes the part of this function only.
    #[transactional(self.db)]
    async fn note(&self, text: &str) -> Result<(), Problem> {
        let note = sqlx::query("INSERT INTO notes (text) VALUES (?)");
        note.bind(text).execute(&self.db).await?;
        if text.len() > 10 {
            return Err(Problem::TooLong);
        }
        Ok(())
    }

    /// Reads one state of all tables, and cannot write.
    #[transactional(self.db, read_only)]
    async fn report(&self) -> Result<(i64, i64, i64), sqlx::Error> {
        let read = |sql| sqlx::query_scalar(sql).fetch_one(&self.db);
        Ok((
            read("SELECT count(*) FROM orders").await?,
            read("SELECT count(*) FROM notes").await?,
            read("SELECT sum(pieces) FROM stock").await?,
        ))
    }

    async fn write_order(&self, item: &str, pieces: i64) -> Result<i64, sqlx::Error> {
        let sql = "INSERT INTO orders (item, pieces) VALUES (?, ?) RETURNING id";
        let insert = sqlx::query_scalar(sql).bind(item).bind(pieces);
        insert.fetch_one(&self.db).await
    }

    async fn take(&self, item: &str, pieces: i64) -> Result<i64, sqlx::Error> {
        let sql = "UPDATE stock SET pieces = pieces - ? WHERE item = ? RETURNING pieces";
        let update = sqlx::query_scalar(sql).bind(pieces).bind(item);
        update.fetch_one(&self.db).await
    }
}

/// The errors of the shop. A failed begin or commit is a `Database` error.
#[derive(Debug)]
enum Problem {
    SoldOut,
    TooLong,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SoldOut => f.write_str("sold out"),
            Self::TooLong => f.write_str("too long for a note"),
            Self::Database(error) => error.fmt(f),
        }
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::SoldOut | Self::TooLong => None,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url).max_size(4).build()?;
    sqlx::raw_sql(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, pieces INTEGER);
         CREATE TABLE notes (text TEXT);
         CREATE TABLE stock (item TEXT, pieces INTEGER);
         INSERT INTO stock VALUES ('chair', 40), ('chair with arms', 5)",
    )
    .execute(&db)
    .await?;
    let shop = Shop { db };

    println!("order {}", shop.order("chair", 3).await?);
    let refused = shop.order("chair", 99).await;
    println!("{}", refused.expect_err("there are not so many"));
    println!("order {}", shop.order("chair", 12).await?);
    assert_eq!(shop.report().await?, (2, 2, 30));
    println!("order {}", shop.order("chair with arms", 1).await?);
    assert_eq!(shop.report().await?, (3, 2, 29));
    Ok(())
}
