//! Many tasks, while connections are killed and futures are dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::Pool;
use cenote_diesel::Diesel;
use cenote_diesel::diesel::result::Error;
use cenote_diesel::diesel_async::{
    AsyncConnection, AsyncMysqlConnection, AsyncPgConnection, SimpleAsyncConnection,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::world::{My, Pg, World};

const SIZE: usize = 4;
const TASKS: usize = 12;
const ROUNDS: u64 = 40;

/// Each transaction adds a 1 and a 2. Some wait inside, and some of those are dropped there.
macro_rules! work {
    ($name:ident, $C:ty) => {
        async fn $name(pool: Pool<Diesel<$C>>, task: u64, committed: &AtomicUsize) {
            for round in 0..ROUNDS {
                // A killed connection can be met at any time.
                let Ok(mut lease) = pool.acquire().await else {
                    continue;
                };
                let pause = Duration::from_millis((task + round) % 4);
                let work = lease.transaction::<(), Error, _>(async |lease| {
                    lease.batch_execute("insert into t values (1)").await?;
                    sleep(pause).await;
                    lease.batch_execute("insert into t values (2)").await
                });
                let limit = Duration::from_millis(5 + 10 * ((task * round) % 3));
                let done = matches!(timeout(limit, work).await, Ok(Ok(())));
                committed.fetch_add(usize::from(done), Ordering::SeqCst);
            }
        }
    };
}

work!(work_on_postgres, AsyncPgConnection);
work!(work_on_mysql, AsyncMysqlConnection);

fn assert_whole(rows: &[i32], committed: usize) {
    let ones = rows.iter().filter(|a| **a == 1).count();
    assert_eq!(ones * 2, rows.len(), "no half of a transaction is there");
    assert!(committed > 0, "the load did something");
    // The answer to a commit can be lost, the commit cannot.
    assert!(ones >= committed, "{ones} of {committed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_loses_no_half_transactions_under_load_with_kills() {
    static COMMITTED: AtomicUsize = AtomicUsize::new(0);
    let server = cenote_servers::postgres::start().unwrap();
    let world = Pg::at(server.url(), "load").await;
    let pool = world.pool(SIZE);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(work_on_postgres(pool.clone(), task as u64, &COMMITTED));
    }

    let mut admin = world.admin().await;
    let mut kills = 0;
    while !tasks.is_empty() {
        let kill = "select count(pg_terminate_backend(pid)) from (select pid from \
                    pg_stat_activity where application_name = 'cenote_di_load' limit 1) one";
        kills += admin.count(kill).await;
        let (sessions, _) = world.sessions().await;
        assert!(
            sessions <= SIZE as i64 + 1,
            "{sessions} sessions, one may be dying"
        );
        sleep(Duration::from_millis(20)).await;
        while let Some(ended) = tasks.try_join_next() {
            ended.unwrap();
        }
    }

    assert!(kills > 0);
    assert_whole(&world.rows().await, COMMITTED.load(Ordering::SeqCst));
    assert_eq!(pool.status().in_use, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_loses_no_half_transactions_under_load_with_kills() {
    static COMMITTED: AtomicUsize = AtomicUsize::new(0);
    let server = cenote_servers::mariadb::start().unwrap();
    let world = My::at(server.url(), "loaded").await;
    let pool = world.pool(SIZE);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(work_on_mysql(pool.clone(), task as u64, &COMMITTED));
    }

    let mut admin = world.admin().await;
    let mut kills = 0;
    while !tasks.is_empty() {
        let one = "select coalesce(max(id), 0) from information_schema.processlist \
                   where db = 'cenote_di_loaded'";
        let one = admin.count(one).await;
        // The session can be gone by now.
        kills += i64::from(admin.0.batch_execute(&format!("kill {one}")).await.is_ok());
        sleep(Duration::from_millis(20)).await;
        while let Some(ended) = tasks.try_join_next() {
            ended.unwrap();
        }
    }

    assert!(kills > 0);
    assert_whole(&world.rows().await, COMMITTED.load(Ordering::SeqCst));
    assert_eq!(pool.status().in_use, 0);
}
