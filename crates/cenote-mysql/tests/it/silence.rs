//! A network that falls silent.

use std::time::Duration;

use cenote_mysql::Pool;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_testkit::{Proxy, Way};
use tokio::time::timeout;

use crate::eventually;
use crate::rig::{PATIENCE, Rig};

const BRIEF: Duration = Duration::from_millis(300);

/// A pool behind a proxy.
async fn behind_proxy(name: &str) -> (Rig, Proxy, cenote_servers::Found) {
    let server = cenote_servers::mariadb::find().unwrap();
    let proxy = Proxy::to_url(server.url()).await.unwrap();
    let through = proxy.url(server.url());
    let rig = Rig::on(server.url(), name, |url| {
        let (_, database) = url.rsplit_once('/').unwrap();
        let url = format!("{}/{database}", through.trim_end_matches('/'));
        let builder = Pool::from_url(url).max_size(2);
        builder
            .check_timeout(BRIEF)
            .clean_timeout(BRIEF)
            .close_timeout(BRIEF)
    })
    .await;
    (rig, proxy, server)
}

#[tokio::test]
async fn statements_in_a_silence_can_be_given_up_and_the_pool_recovers() {
    let (rig, proxy, _server) = behind_proxy("stall").await;
    rig.pool.query_drop("SELECT 1").await.unwrap();

    proxy.stall(Way::ToClient);
    for _ in 0..4 {
        let late = timeout(BRIEF, rig.pool.query_drop("SELECT 1")).await;
        assert!(late.is_err(), "nothing is answered");
    }
    let late = timeout(PATIENCE, rig.pool.acquire_within(BRIEF)).await;
    assert!(late.unwrap().is_err(), "the deadline is kept");
    proxy.resume(Way::ToClient);

    eventually("the pool has recovered", async || {
        let two = timeout(PATIENCE, rig.pool.query_first::<i32, _>("SELECT 2")).await;
        two.unwrap().is_ok_and(|two| two == Some(2))
    })
    .await;
    eventually(
        "the server has no more sessions than the pool",
        async || rig.sessions().await == rig.pool.status().total,
    )
    .await;
}

#[tokio::test]
async fn a_connection_that_the_network_has_forgotten_is_closed_in_time() {
    let (rig, proxy, _server) = behind_proxy("forget").await;
    let mut lease = rig.acquire().await;
    lease.query_drop("SET @x = 1").await.unwrap();

    proxy.forget(Way::ToClient);
    drop(lease);

    let x: Option<i32> = rig.pool.query_first("SELECT @x IS NULL").await.unwrap();
    assert_eq!(x, Some(1));
    eventually("the forgotten one is closed", async || {
        let status = rig.pool.status();
        status.closes.total() >= 1 && status.total == status.idle
    })
    .await;
}

#[tokio::test]
async fn an_open_in_a_silence_ends_at_its_limit() {
    let (rig, proxy, _server) = behind_proxy("opening").await;
    proxy.stall(Way::ToClient);

    let late = rig.pool.acquire_within(BRIEF).await;
    proxy.resume(Way::ToClient);

    assert!(late.is_err());
    rig.pool.query_drop("SELECT 1").await.unwrap();
}
