//! Run: cargo run --release -p cenote-mysql --example trips
//!
//! What a statement costs: on the driver alone, on its own pool, and on this pool.

use std::error::Error;
use std::time::{Duration, Instant};

use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{self, Opts, OptsBuilder};
use cenote_mysql::{Pool, Reset};

const TRIPS: u32 = 4000;
const TASKS: u32 = 16;
const CONNECTIONS: usize = 4;
const SQL: &str = "SELECT ? + 1";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = cenote_servers::mariadb::start()?;
    let options = Opts::from_url(server.url())?;
    let options = OptsBuilder::from_opts(options).prefer_socket(false);
    let constraints = mysql_async::PoolConstraints::new(1, CONNECTIONS).ok_or("wrong sizes")?;
    let pooled = |reset| {
        let pool_opts = mysql_async::PoolOpts::default()
            .with_constraints(constraints)
            .with_reset_connection(reset);
        mysql_async::Pool::new(options.clone().pool_opts(pool_opts))
    };
    let ours = |reset| {
        let builder = Pool::with_options(options.clone()).max_size(CONNECTIONS);
        builder.reset(reset).build()
    };

    println!(
        "prepared statement, µs a trip     one task   {TASKS} tasks on {CONNECTIONS} connections"
    );
    let mut conn = mysql_async::Conn::new(options.clone()).await?;
    let alone = time(async || {
        for n in 0..TRIPS {
            let sum: Option<u32> = conn.exec_first(SQL, (n,)).await?;
            assert_eq!(sum, Some(n + 1));
        }
        Ok(())
    });
    println!("{:32} {:9.1}", "one connection, no pool", alone.await?);
    for (name, reset) in [
        ("mysql_async, reset", true),
        ("mysql_async, no reset", false),
    ] {
        let pool = pooled(reset);
        report(name, async |n| {
            let mut conn = pool.get_conn().await?;
            Ok(conn.exec_first(SQL, (n,)).await?)
        })
        .await?;
        pool.disconnect().await?;
    }
    for (name, reset) in [
        ("cenote-mysql, Reset::Always", Reset::Always),
        ("cenote-mysql, Reset::Never", Reset::Never),
    ] {
        let pool = ours(reset)?;
        report(name, async |n| Ok(pool.exec_first(SQL, (n,)).await?)).await?;
        pool.close_within(Duration::from_secs(5)).await;
    }
    Ok(())
}

type Answer = Result<Option<u32>, Box<dyn Error>>;

async fn report(name: &str, trip: impl AsyncFn(u32) -> Answer) -> Result<(), Box<dyn Error>> {
    let trips = async || {
        for n in 0..TRIPS / TASKS {
            assert_eq!(trip(n).await?, Some(n + 1));
        }
        Ok(())
    };
    trips().await?; // the first trips open connections
    let one = time(async || {
        for _ in 0..TASKS {
            trips().await?;
        }
        Ok(())
    });
    let one = one.await?;
    let many = time(async || {
        let tasks = (0..TASKS).map(|_| trips());
        let done = futures_util::future::join_all(tasks).await;
        done.into_iter().collect()
    });
    println!("{name:32} {one:9.1} {:9.1}", many.await?);
    Ok(())
}

/// Returns the microseconds of a trip.
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
async fn time(
    work: impl AsyncFnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let began = Instant::now();
    work().await?;
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(TRIPS))
}
