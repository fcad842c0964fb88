//! Faults of the server and of the network.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::event::CallbackFailed;
use cenote::{CloseReason, Observer};
use cenote_postgres::Class;
use cenote_testkit::{Proxy, Way};
use tokio::time::timeout;

use crate::{Admin, LIMIT, backend, builder_at, eventually};

#[tokio::test]
async fn a_killed_connection_is_replaced() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let pool = builder_at(server.url(), 1).build().unwrap();
    let lease = pool.acquire().await.unwrap();
    let first = backend(&lease).await;

    admin.kill(first).await;
    let error = lease.query("select 1", &[]).await.unwrap_err();

    assert_eq!(cenote_postgres::classify(&error), Class::Broken);
    eventually("the client knows", async || lease.is_closed()).await;
    drop(lease);
    assert_ne!(backend(&pool.acquire().await.unwrap()).await, first);
}

/// Collects why callbacks failed.
#[derive(Default)]
struct Failures(Mutex<Vec<String>>);

impl Observer for Failures {
    fn callback_failed(&self, event: &CallbackFailed<'_>) {
        self.0.lock().unwrap().push(event.message.to_string());
    }
}

#[tokio::test]
async fn an_idle_connection_that_dies_is_noticed_at_once_and_its_reason_is_told() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let failures = Arc::new(Failures::default());
    let observer = Arc::clone(&failures);
    let pool = builder_at(server.url(), 1)
        .check_after_idle(None)
        .pool(move |pool| pool.observer(observer))
        .build()
        .unwrap();
    // Without a statement: its last message, unread, would make the end a reset without a reason.
    let first = pool.acquire().await.unwrap().backend().unwrap();
    let count = format!("select count(*) from pg_stat_activity where pid = {first}");

    admin.kill(first).await;
    eventually("it is gone", async || admin.count(&count).await == 0).await;
    eventually("another one is lent", async || {
        let lease = pool.acquire().await.unwrap();
        lease.backend() != Some(first)
    })
    .await;

    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    let told = || failures.0.lock().unwrap().join("; ");
    eventually("the reason is told", async || {
        told().contains("administrator command")
    })
    .await;
}

#[tokio::test]
async fn a_pool_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::postgres::start().unwrap();
    let pool = builder_at(server.url(), 3).build().unwrap();
    let held: Vec<_> = {
        let all = (0..3).map(|_| pool.acquire());
        futures_util::future::try_join_all(all).await.unwrap()
    };

    server.restart().unwrap();
    for lease in &held {
        assert!(lease.query("select 1", &[]).await.is_err());
    }
    drop(held);

    eventually("it works again", async || {
        pool.query("select 1", &[]).await.is_ok()
    })
    .await;
    for _ in 0..10 {
        pool.query("select 1", &[]).await.unwrap();
    }
}

#[tokio::test]
async fn a_hung_connection_is_closed_by_the_limits_of_the_pool() {
    let server = cenote_servers::postgres::start().unwrap();
    let proxy = Proxy::to_url(server.url()).await.unwrap();
    let short = Duration::from_millis(300);
    let pool = builder_at(&proxy.url(server.url()), 1)
        .clean_timeout(short)
        .check_timeout(short)
        .close_timeout(short)
        .check_after_idle(Duration::ZERO)
        .build()
        .unwrap();
    let lease = pool.acquire().await.unwrap();

    // The statement is dropped, and neither it nor the cancel request gets through.
    proxy.freeze(Way::ToServer);
    let silent = timeout(Duration::from_millis(50), lease.query("select 1", &[])).await;
    assert!(silent.is_err());
    drop(lease);
    eventually("it is closed", async || pool.status().total == 0).await;
    proxy.heal().unwrap();

    eventually("it works again", async || {
        pool.query("select 1", &[]).await.is_ok()
    })
    .await;
    proxy.freeze(Way::ToClient);
    let late = pool.acquire_within(Duration::from_millis(100)).await;
    assert!(late.is_err(), "the check gets no answer");
    proxy.heal().unwrap();
    eventually("it works again", async || {
        pool.query("select 1", &[]).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_reset_network_fails_statements_and_nothing_else() {
    let server = cenote_servers::postgres::start().unwrap();
    let proxy = Proxy::to_url(server.url()).await.unwrap();
    let pool = builder_at(&proxy.url(server.url()), 2).build().unwrap();
    let lease = pool.acquire().await.unwrap();
    let sleeping = lease.query("select pg_sleep(600) /* cenote_pg_reset */", &[]);
    let admin = Admin::at(server.url()).await;
    let cut = async {
        admin.until_running("cenote_pg_reset", true).await;
        proxy.reset();
    };

    let (ended, ()) = tokio::join!(sleeping, cut);

    let error = ended.unwrap_err();
    assert_eq!(
        cenote_postgres::classify(&error),
        Class::Broken,
        "{error:?}"
    );
    drop(lease);
    pool.query("select 1", &[]).await.unwrap();
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
}

#[tokio::test]
async fn a_closed_pool_leaves_no_session_and_can_cut_those_that_are_lent() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let url = format!("{}?application_name=cenote_pg_close", server.url());
    let count = "select count(*) from pg_stat_activity where application_name = 'cenote_pg_close'";
    let pool = builder_at(&url, 3).min_idle(1).build().unwrap();
    pool.warm().await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let running = tokio::spawn(async move {
        let ended = lease
            .query("select pg_sleep(600) /* cenote_pg_cut */", &[])
            .await;
        ended.is_err()
    });
    admin.until_running("cenote_pg_cut", true).await;

    let left = pool.close_within(Duration::from_millis(50)).await;
    assert_eq!(left.leases.len(), 1);
    assert_eq!(pool.sever(), 1);

    assert!(timeout(LIMIT, running).await.expect("it is cut").unwrap());
    assert!(pool.close_within(LIMIT).await.is_empty());
    // The server notices the end of the client when its statement ends, or is cancelled.
    let stop = "select pg_cancel_backend(pid) from pg_stat_activity \
                where application_name = 'cenote_pg_close'";
    admin.0.batch_execute(stop).await.unwrap();
    eventually("no session is left", async || admin.count(count).await == 0).await;
}

#[tokio::test]
async fn no_task_of_a_connection_outlives_its_pool() {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let pool = crate::pool(3);
    drop(pool.acquire().await.unwrap());
    let with_one = alive();
    let held: Vec<_> = {
        let all = (0..3).map(|_| pool.acquire());
        futures_util::future::try_join_all(all).await.unwrap()
    };
    eventually("each connection has a task", async || {
        alive() == with_one + 2
    })
    .await;

    drop(held);
    drop(pool);

    // The upkeep of the pool may sleep for a while.
    eventually("their tasks have ended", async || alive() < with_one).await;
}

/// The thread of the pool drives the connection.
#[test]
fn a_pool_works_without_a_runtime_of_its_caller() {
    let pool = crate::pool(1);

    let lease = pool.acquire_blocking().unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let row = runtime.unwrap().block_on(lease.query_one("select 7", &[]));
    assert_eq!(row.unwrap().get::<_, i32>(0), 7);
}

/// A connection ends with the runtime that drives it.
#[test]
fn a_pool_survives_the_runtime_that_opened_its_connections() {
    let pool = crate::pool(1);
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let work = async { pool.query("select 1", &[]).await.unwrap().len() };
        assert_eq!(runtime.unwrap().block_on(work), 1);
    }
}
