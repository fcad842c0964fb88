//! Run: cargo run -p cenote-examples --example postgres_hello
//!
//! How do I use tokio-postgres with a pool that cleans up after its users?

use std::error::Error as StdError;
use std::time::Duration;

use cenote_postgres::{Error, Pool};
use tokio::time::timeout;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let server = cenote_servers::postgres::start()?;
    let pool = Pool::from_url(server.url()).max_size(2).build()?;
    pool.batch_execute("create table account (id int primary key, cents bigint)")
        .await?;
    for id in 1..=2 {
        pool.execute("insert into account values ($1, 100)", &[&id])
            .await?;
    }

    // Neither function knows that it is part of a transaction.
    pool.transaction(async || {
        add(&pool, 1, -30).await?;
        add(&pool, 2, 30).await
    })
    .await?;
    let failed = pool.transaction(async || {
        add(&pool, 1, -1000).await?;
        pool.query("select 1 / 0", &[]).await
    });
    assert!(failed.await.is_err());
    let rows = pool
        .query("select cents from account order by id", &[])
        .await?;
    let cents: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    println!("accounts: {cents:?}");
    assert_eq!(cents, [70, 130]);

    // A user that leaves a mess: a setting, an open transaction, and a statement that still runs.
    let lease = pool.acquire().await?;
    lease
        .batch_execute("set work_mem = '1MB'; begin; delete from account")
        .await?;
    let slow = lease.query("select pg_sleep(600)", &[]);
    assert!(timeout(Duration::from_millis(100), slow).await.is_err());
    drop(lease);

    for _ in 0..2 {
        let lease = pool.acquire().await?;
        let rows = lease.query("select * from account", &[]).await?;
        let memory = lease.query_one("show work_mem", &[]).await?;
        println!("{} rows, work_mem {}", rows.len(), memory.get::<_, &str>(0));
        assert_eq!((rows.len(), memory.get(0)), (2, "4MB"));
    }
    Ok(())
}

async fn add(pool: &Pool, id: i32, cents: i64) -> Result<u64, Error> {
    let sql = "update account set cents = cents + $2 where id = $1";
    pool.execute(sql, &[&id, &cents]).await
}
