//! Connections that the server ends, and a server that is started again.

use std::time::Duration;

use crate::rig::Rig;
use crate::server::{config_of, serve};

#[tokio::test]
async fn a_transaction_whose_connection_is_lost_is_a_500_and_the_pool_does_not_shrink() {
    let rig = Rig::without_db("lost");
    let server = serve(config_of(&rig), &rig).await;

    for id in 1..=3 {
        let answer = server.get("/in/cut").await;
        assert_eq!(answer.status, 500);
        assert!(!answer.body.contains("all is well"));
        let path = format!("/in/insert/{id}/200");
        assert_eq!(server.get(&path).await.status, 200);
    }

    assert_eq!(rig.rows().await, 3);
    rig.until_whole().await;
}

#[tokio::test]
async fn connections_that_are_killed_between_two_requests_are_not_noticed_by_the_clients() {
    let rig = Rig::without_db("killed");
    let config = config_of(&rig).merge(("databases.orders.pool.check_after_idle", "0s"));
    let server = serve(config, &rig).await;

    for _ in 0..3 {
        assert_eq!(server.get("/guarded").await.status, 200);
        assert!(rig.kill_all().await > 0);
    }

    assert_eq!(server.get("/guarded").await.status, 200);
    rig.until_whole().await;
}

#[tokio::test]
async fn requests_are_served_again_after_the_server_was_killed_and_started_again() {
    let mut postgres = cenote_servers::postgres::start().unwrap();
    let rig = Rig::without_db("restart");
    let config = config_of(&rig)
        .merge(("databases.orders.url", postgres.url()))
        .merge(("databases.orders.connect_timeout", 1));
    let server = serve(config, &rig).await;
    assert_eq!(server.get("/guarded").await.status, 200);

    postgres.kill().unwrap();
    let status = server.get("/guarded").await.status;
    assert!([500, 503].contains(&status), "{status}");
    assert_eq!(server.get("/guarded").await.status, 503);

    postgres.restart().unwrap();

    let mut served = 0;
    for _ in 0..500 {
        served = server.get("/guarded").await.status;
        if served == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(served, 200);
    rig.until_whole().await;
}
