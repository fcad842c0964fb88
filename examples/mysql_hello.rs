//! Run: cargo run -p cenote-examples --example mysql_hello
//!
//! How do I use mysql_async with a pool that leaves no stray answers and no changed sessions?

use std::error::Error as StdError;
use std::time::Duration;

use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Error, Pool};
use tokio::time::timeout;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let server = cenote_servers::mariadb::start()?;
    Pool::from_url(server.url())
        .build()?
        .query_drop("CREATE DATABASE bank")
        .await?;
    let pool = Pool::from_url(format!("{}/bank", server.url())).max_size(2);
    let pool = pool.build()?;
    pool.query_drop("CREATE TABLE account (id INT PRIMARY KEY, cents INT)")
        .await?;
    pool.query_drop("INSERT INTO account VALUES (1, 100), (2, 100)")
        .await?;

    // Neither function knows that it is part of a transaction.
    pool.transaction(async || {
        add(&pool, 1, -30).await?;
        add(&pool, 2, 30).await
    })
    .await?;
    let failed = pool.transaction(async || {
        add(&pool, 1, -1000).await?;
        pool.query_drop("no statement at all").await
    });
    assert!(failed.await.is_err());
    let cents: Vec<i32> = pool.query("SELECT cents FROM account ORDER BY id").await?;
    println!("accounts: {cents:?}");
    assert_eq!(cents, [70, 130]);

    // A user that leaves a mess: a variable, another database, and a statement that still runs.
    let mut lease = pool.acquire().await?;
    lease.query_drop("SET @tenant = 7; USE mysql").await?;
    let slow = lease.query_drop("SELECT SLEEP(600)");
    assert!(timeout(Duration::from_millis(100), slow).await.is_err());
    drop(lease);

    for _ in 0..2 {
        let mut lease = pool.acquire().await?;
        let left: Option<(bool, String)> = lease
            .query_first("SELECT @tenant IS NOT NULL, DATABASE()")
            .await?;
        println!("left behind, and the database: {left:?}");
        assert_eq!(left, Some((false, "bank".to_owned())));
    }
    Ok(())
}

async fn add(pool: &Pool, id: i32, cents: i32) -> Result<u64, Error> {
    let sql = "UPDATE account SET cents = cents + ? WHERE id = ?";
    pool.exec_drop(sql, (cents, id)).await
}
