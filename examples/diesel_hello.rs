//! Run: cargo run -p cenote-examples --example diesel_hello
//!
//! How do I use diesel and diesel-async with a pool that rolls back what its users leave open?

use std::error::Error;
use std::time::Duration;

use cenote::Pool;
use cenote_diesel::{Blocking, Diesel};
use diesel::prelude::{ExpressionMethods, QueryDsl, SqliteConnection};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use tokio::time::timeout;

diesel::table! {
    /// The accounts of a bank.
    account (id) {
        /// The number of the account.
        id -> Integer,
        /// The money in it.
        cents -> BigInt,
    }
}

const TABLE: &str = "create table account (id int primary key, cents bigint);
                     insert into account values (1, 100), (2, 100)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = cenote_servers::postgres::start()?;
    let manager = Diesel::<AsyncPgConnection>::new(server.url());
    on_postgres(Pool::builder(manager).max_size(1).build()?).await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bank.db");
    let manager = Blocking::<SqliteConnection>::new(file.to_string_lossy());
    off_thread(Pool::builder(manager).max_size(1).build()?).await
}

/// A lease is a connection of diesel-async.
async fn on_postgres(pool: Pool<Diesel<AsyncPgConnection>>) -> Result<(), Box<dyn Error>> {
    let mut lease = pool.acquire().await?;
    lease.batch_execute(TABLE).await?;
    lease
        .transaction::<_, diesel::result::Error, _>(async |lease| {
            let first = diesel::update(account::table.find(1));
            let first = first.set(account::cents.eq(account::cents - 30));
            first.execute(lease).await?;
            let second = diesel::update(account::table.find(2));
            let second = second.set(account::cents.eq(account::cents + 30));
            second.execute(lease).await
        })
        .await?;
    drop(lease);

    // A caller gives up in the middle of a transaction.
    let mut lease = pool.acquire().await?;
    let work = lease.transaction::<(), diesel::result::Error, _>(async |lease| {
        diesel::delete(account::table).execute(lease).await?;
        std::future::pending().await
    });
    let work = timeout(Duration::from_millis(100), work).await;
    assert!(work.is_err());
    drop(lease);

    let mut lease = pool.acquire().await?;
    let query = account::table.select(account::cents).order(account::id);
    let cents: Vec<i64> = query.load(&mut lease).await?;
    println!("PostgreSQL: {cents:?}");
    assert_eq!(cents, [70, 130]);
    assert_eq!(pool.status().opened, 1, "it is the same connection");
    Ok(())
}

/// A lease runs closures on another thread, with a connection of diesel itself.
async fn off_thread(pool: Pool<Blocking<SqliteConnection>>) -> Result<(), Box<dyn Error>> {
    use diesel::connection::SimpleConnection;

    let mut lease = pool.acquire().await?;
    let made = lease.run(|connection| connection.batch_execute(TABLE));
    made.await?;
    let sum = lease.run(|connection| {
        let all = account::table.select(account::cents);
        diesel::RunQueryDsl::load::<i64>(all, connection)
    });
    let sum: i64 = sum.await?.iter().sum();
    println!("SQLite: {sum}");
    assert_eq!(sum, 200);
    Ok(())
}
