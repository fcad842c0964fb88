//! Load with kills: every lease is clean, and every row is there that was committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use cenote_postgres::{Error, Pool};
use tokio::time::{sleep, timeout};

use crate::{Admin, LIMIT, builder_at, eventually, is_open};

const TASKS: u64 = 8;

/// How long the load lasts. No promise depends on it.
const LASTS: Duration = Duration::from_secs(3);

struct Tally {
    pool: Pool,
    over: AtomicBool,
    committed: AtomicI64,
    answered: AtomicI64,
}

impl Tally {
    /// Does one of several things that users do, and returns an error if its connection broke.
    async fn act(&self, number: u64) -> Result<(), Error> {
        let pool = &self.pool;
        let insert = "insert into t values ($1)";
        match number % 6 {
            0 => {
                pool.transaction(async || pool.execute(insert, &[&1]).await)
                    .await?;
                self.committed.fetch_add(1, Ordering::SeqCst);
            }
            1 => {
                let failed = pool.transaction(async || {
                    pool.execute(insert, &[&2]).await?;
                    pool.query("select 1 / 0", &[]).await
                });
                assert!(failed.await.is_err());
            }
            2 => {
                let lease = pool.acquire().await?;
                lease
                    .batch_execute("set cenote.kept = 'yes'; begin")
                    .await?;
                lease.execute(insert, &[&3]).await?;
            }
            3 => {
                let slow = pool.query("select pg_sleep(600)", &[]);
                let _ = timeout(Duration::from_millis(20), slow).await;
            }
            4 => {
                let mut lease = pool.acquire().await?;
                let transaction = lease.transaction().await?;
                transaction.execute(insert, &[&4]).await?;
            }
            _ => {
                let lease = pool.acquire().await?;
                let sql = "select coalesce(current_setting('cenote.kept', true), ''), $1::bigint";
                let row = lease.query_one(sql, &[&(number as i64)]).await?;
                assert_eq!(row.get::<_, &str>(0), "", "the session is clean");
                assert_eq!(row.get::<_, i64>(1), number as i64, "its own answer");
                assert!(!is_open(&lease).await);
            }
        }
        self.answered.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn work(&self, task: u64) {
        let mut number = task;
        while !self.over.load(Ordering::SeqCst) {
            let _ = self.act(number).await;
            number += 7;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_with_kills_every_lease_is_clean_and_no_row_is_lost() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    admin
        .0
        .batch_execute("create table t (a int)")
        .await
        .unwrap();
    let url = format!("{}?application_name=cenote_pg_load", server.url());
    let tally = Arc::new(Tally {
        pool: builder_at(&url, 4).build().unwrap(),
        over: AtomicBool::new(false),
        committed: AtomicI64::new(0),
        answered: AtomicI64::new(0),
    });
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let tally = Arc::clone(&tally);
            tokio::spawn(async move { tally.work(task).await })
        })
        .collect();

    let kill = "select pg_terminate_backend(pid) from pg_stat_activity \
                where application_name = 'cenote_pg_load' order by random() limit 1";
    let _ = timeout(LASTS, async {
        loop {
            sleep(Duration::from_millis(50)).await;
            admin.0.batch_execute(kill).await.unwrap();
        }
    })
    .await;
    let seen = tally.answered.load(Ordering::SeqCst);
    eventually("work goes on", async || {
        tally.answered.load(Ordering::SeqCst) > seen
    })
    .await;
    tally.over.store(true, Ordering::SeqCst);
    for task in tasks {
        timeout(LIMIT, task).await.expect("it ends").unwrap();
    }

    let pool = &tally.pool;
    eventually("the pool is idle", async || {
        let seen = pool.status();
        seen.idle == seen.total && seen.waiting == 0
    })
    .await;
    // A commit whose answer was lost may be there, too.
    let committed = tally.committed.load(Ordering::SeqCst);
    let rows = admin.count("select count(*) from t where a = 1").await;
    assert!(rows >= committed, "{rows} rows of {committed}");
    assert_eq!(admin.count("select count(*) from t where a <> 1").await, 0);
    assert!(pool.close_within(LIMIT).await.is_empty());
    let left = "select count(*) from pg_stat_activity where application_name = 'cenote_pg_load'";
    eventually("no session is left", async || admin.count(left).await == 0).await;
}
