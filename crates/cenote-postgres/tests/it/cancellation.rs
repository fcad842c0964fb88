//! Futures that are dropped: the server stops, and the next user gets a clean connection.

use std::time::Duration;

use cenote_postgres::Pool;
use cenote_testkit::cut;
use futures_util::StreamExt;
use tokio::time::timeout;

use crate::{Admin, LIMIT, backend, builder, eventually, is_open, pool, text, url};

/// Starts a statement that takes long, and drops it when the server runs it.
async fn drop_midway(pool: &Pool, admin: &Admin, mark: &str) -> i32 {
    let lease = pool.acquire().await.unwrap();
    let before = backend(&lease).await;
    let sql = format!("select pg_sleep(600) /* {mark} */");
    tokio::select! {
        ended = lease.query(&sql, &[]) => panic!("it ended: {ended:?}"),
        () = admin.until_running(mark, true) => {}
    }
    before
}

#[tokio::test]
async fn a_dropped_statement_is_cancelled_on_the_server_and_its_connection_kept() {
    let (pool, admin) = (pool(1), Admin::at(url()).await);

    let before = drop_midway(&pool, &admin, "cenote_pg_kept").await;
    let after = backend(&pool.acquire().await.unwrap()).await;

    assert_eq!(after, before, "the connection is kept");
    admin.until_running("cenote_pg_kept", false).await;
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn many_statements_that_are_dropped_at_once_are_all_cancelled() {
    let (pool, admin) = (pool(4), Admin::at(url()).await);
    let leases: Vec<_> = {
        let all = (0..4).map(|_| pool.acquire());
        futures_util::future::try_join_all(all).await.unwrap()
    };
    let sql = "select pg_sleep(600) /* cenote_pg_many */";
    let running = leases.iter().map(|lease| lease.query(sql, &[]));
    let count = "select count(*) from pg_stat_activity where query like '%cenote_pg_many *%' \
                 and state = 'active' and pid <> pg_backend_pid()";
    tokio::select! {
        ended = futures_util::future::join_all(running) => panic!("they ended: {ended:?}"),
        () = eventually("all run", async || admin.count(count).await == 4) => {}
    }

    drop(leases);
    for _ in 0..8 {
        pool.query("select 1", &[]).await.unwrap();
    }

    eventually("none runs", async || admin.count(count).await == 0).await;
    assert_eq!(pool.status().opened, 4, "the connections are kept");
}

#[tokio::test]
async fn a_stream_that_is_dropped_does_not_delay_the_next_user() {
    let pool = pool(1);
    let lease = pool.acquire().await.unwrap();
    let before = backend(&lease).await;
    let none: [i32; 0] = [];
    let rows = lease
        .query_raw("select generate_series(1, 2000000000)", none)
        .await;
    let mut rows = rows.unwrap();
    assert!(rows.next().await.unwrap().is_ok());

    drop(rows);
    drop(lease);

    let next = timeout(LIMIT, pool.acquire())
        .await
        .expect("the rest is cancelled");
    assert_eq!(backend(&next.unwrap()).await, before);
}

#[tokio::test]
async fn without_cancelling_a_dropped_statement_closes_its_connection() {
    let pool = builder(1)
        .cancel_on_server(false)
        .close_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let admin = Admin::at(url()).await;

    let before = drop_midway(&pool, &admin, "cenote_pg_off").await;

    assert_ne!(backend(&pool.acquire().await.unwrap()).await, before);
    admin.kill(before).await;
}

#[tokio::test]
async fn a_statement_dropped_in_a_transaction_is_rolled_back_with_it() {
    let (pool, admin) = (pool(1), Admin::at(url()).await);
    let mut lease = pool.acquire().await.unwrap();
    let before = backend(&lease).await;
    let transaction = lease.transaction().await.unwrap();
    transaction
        .batch_execute("set local cenote.kept = 'yes'")
        .await
        .unwrap();
    tokio::select! {
        ended = transaction.query("select pg_sleep(600) /* cenote_pg_in */", &[]) => {
            panic!("it ended: {ended:?}")
        }
        () = admin.until_running("cenote_pg_in", true) => {}
    }

    drop(transaction);
    drop(lease);

    let lease = pool.acquire().await.unwrap();
    let left = "select coalesce(current_setting('cenote.kept', true), '')";
    assert_eq!(text(&lease, left).await, "");
    assert_eq!(backend(&lease).await, before);
    admin.until_running("cenote_pg_in", false).await;
}

/// The work below is polled some dozens of times.
const MOST_POLLS: usize = 1000;

/// Every future is dropped after each number of polls until it ends.
#[tokio::test]
async fn a_future_may_be_dropped_at_every_await() {
    let pool = pool(1);
    let table = format!("cenote_pg_cut_{}", std::process::id());
    let again = format!("drop table if exists {table}; create table {table} (a int)");
    pool.batch_execute(&again).await.unwrap();
    let insert = format!("insert into {table} values (1)");
    let count = format!("select count(*) from {table}");

    for polls in 0..=MOST_POLLS {
        let work = async {
            let mut lease = pool.acquire().await.unwrap();
            lease.execute("set cenote.kept = 'yes'", &[]).await.unwrap();
            let mut transaction = lease.transaction().await.unwrap();
            let inner = transaction.transaction().await.unwrap();
            inner.execute(&insert, &[]).await.unwrap();
            inner.commit().await.unwrap();
            let cached = transaction.prepare_cached(&insert).await.unwrap();
            transaction.execute(&cached, &[]).await.unwrap();
            transaction.rollback().await.unwrap();
        };
        let ended = cut(polls, work).await;
        let ambient = async {
            let failed: Result<(), cenote_postgres::Error> = pool
                .transaction(async || {
                    pool.execute(&insert, &[]).await?;
                    let inner = pool.transaction(async || pool.execute(&insert, &[]).await);
                    inner.await?;
                    pool.query_one("select 1 / 0", &[]).await?;
                    Ok(())
                })
                .await;
            assert!(failed.is_err());
        };
        let also_ended = cut(polls, ambient).await;

        let lease = pool.acquire().await.unwrap();
        let left = "select coalesce(current_setting('cenote.kept', true), '')";
        assert_eq!(text(&lease, left).await, "", "after {polls} polls");
        let rows: i64 = lease.query_one(&count, &[]).await.unwrap().get(0);
        assert_eq!(rows, 0, "after {polls} polls");
        assert!(!is_open(&lease).await, "after {polls} polls");
        if ended.is_some() && also_ended.is_some() {
            break;
        }
        assert_ne!(polls, MOST_POLLS, "it never ends");
    }
    assert_eq!(pool.status().opened, 1, "no connection was lost");
    pool.batch_execute(&format!("drop table {table}"))
        .await
        .unwrap();
}
