//! Connections that the server ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote::CloseReason;
use cenote_mysql::Class;
use cenote_mysql::Pool;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_testkit::conformance::cut;
use cenote_testkit::{Proxy, Way};

use crate::eventually;
use crate::rig::{PATIENCE, Rig, admin};

#[tokio::test]
async fn an_idle_connection_that_was_killed_is_replaced() {
    let rig = Rig::with("idle", |builder| {
        builder.max_size(1).check_after_idle(Duration::ZERO)
    })
    .await;
    let first = rig.acquire().await.id();

    rig.kill(first).await;

    let second = rig.acquire().await.id();
    assert_ne!(first, second);
    assert_eq!(rig.pool.status().closes.by(CloseReason::FailedCheck), 1);
}

#[tokio::test]
async fn a_connection_that_was_killed_in_use_fails_once() {
    let rig = Rig::with("in_use", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    rig.kill(lease.id()).await;

    let error = lease.query_drop("SELECT 1").await.unwrap_err();
    let again = lease.query_drop("SELECT 1").await.unwrap_err();
    drop(lease);

    for error in [error, again] {
        assert_eq!(cenote_mysql::classify(&error), Class::Broken, "{error}");
    }
    let one: Option<i32> = rig.pool.query_first("SELECT 1").await.unwrap();
    assert_eq!((one, rig.pool.status().opened), (Some(1), 2));
}

#[tokio::test]
async fn a_statement_that_is_killed_spares_its_connection() {
    let rig = Rig::with("statement_killed", |builder| builder.max_size(1)).await;
    let pool = rig.pool.clone();
    let asleep = tokio::spawn(async move {
        let mut lease = pool.acquire().await.unwrap();
        let asleep = lease.query_first::<i32, _>("SELECT SLEEP(1000)").await;
        (asleep, lease.id())
    });
    rig.runs("SLEEP(1000)").await;
    let mut admin = rig.admin().await;
    let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?";
    let id: u32 = admin.exec_first(sql, (&rig.mark,)).await.unwrap().unwrap();

    admin.query_drop(format!("KILL QUERY {id}")).await.unwrap();

    let (_, same) = asleep.await.unwrap();
    assert_eq!(same, id);
    assert_eq!(rig.acquire().await.id(), id);
}

#[tokio::test]
async fn a_pool_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::mariadb::start().unwrap();
    let rig = Rig::on(server.url(), "restart", |url| {
        let builder = Pool::from_url(url).max_size(4);
        builder.check_after_idle(Duration::ZERO)
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(rig.acquire().await);
    }
    let mut in_use = held.pop().unwrap();
    drop(held);

    server.restart().unwrap();

    let error = in_use.query_drop("SELECT 1").await.unwrap_err();
    assert_eq!(cenote_mysql::classify(&error), Class::Broken, "{error}");
    drop(in_use);
    for a in 0..8 {
        let insert = "INSERT INTO t VALUES (?, 0)";
        rig.pool.exec_drop(insert, (a,)).await.unwrap();
    }
    assert_eq!(rig.rows().await.len(), 8);
}

#[tokio::test]
async fn a_crash_under_load_loses_no_acknowledged_row() {
    let mut server = cenote_servers::mariadb::start().unwrap();
    let rig = Rig::on(server.url(), "crash", |url| Pool::from_url(url).max_size(4)).await;
    let enough = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let (pool, enough) = (rig.pool.clone(), Arc::clone(&enough));
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                let mut a = task;
                while !enough.load(Ordering::Acquire) {
                    let insert = "INSERT INTO t VALUES (?, 0)";
                    if pool.exec_drop(insert, (a,)).await.is_ok() {
                        acknowledged.push(a);
                    }
                    a += 4;
                }
                acknowledged
            })
        })
        .collect();
    eventually("rows are written", async || rig.rows().await.len() > 20).await;

    server.kill().unwrap();
    server.restart().unwrap();
    let before = rig.rows().await.len();
    eventually("rows are written again", async || {
        rig.rows().await.len() > before
    })
    .await;
    enough.store(true, Ordering::Release);

    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.extend(tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap());
    }
    let rows = rig.rows().await;
    assert!(acknowledged.iter().all(|a| rows.contains(a)));
}

/// After the restart, another client has the number of the old session.
#[tokio::test]
async fn a_statement_that_is_dropped_after_a_restart_kills_no_other_client() {
    let mut server = cenote_servers::mariadb::start().unwrap();
    let proxy = Proxy::to_url(server.url()).await.unwrap();
    let through = proxy.url(server.url());
    let builder = Pool::from_url(through)
        .max_size(1)
        .acquire_timeout(PATIENCE);
    let pool = builder.build().unwrap();
    // A new server gives small numbers to its first clients.
    let mut before = Vec::new();
    for _ in 0..20 {
        before.push(admin(server.url()).await);
    }
    let mut lease = pool.acquire().await.unwrap();
    let id = lease.id();
    // The client does not hear that its connection has ended.
    proxy.forget(Way::ToClient);
    server.restart().unwrap();
    let mut others = Vec::new();
    let mut innocent = loop {
        let other = admin(server.url()).await;
        match other.id() {
            number if number == id => break other,
            number => assert!(number < id, "the number was passed over"),
        }
        others.push(other);
    };
    assert!(cut(1, lease.query_drop("SELECT 1")).await.is_none());
    drop(lease);
    let one: Option<i32> = pool.query_first("SELECT 1").await.unwrap();

    assert_eq!(
        one,
        Some(1),
        "the slot is free, so the old session is closed"
    );
    innocent.ping().await.unwrap();
}
