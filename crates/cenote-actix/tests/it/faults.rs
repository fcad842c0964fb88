//! Connections that the server ends, and a server that is started again.

use std::time::Duration;

use cenote_sqlx::Db;

use crate::handlers::transactional;
use crate::rig::Rig;

#[tokio::test]
async fn a_transaction_whose_connection_is_lost_is_a_500_and_the_pool_does_not_shrink() {
    let rig = Rig::new("lost").await;
    let server = transactional(&rig);

    for id in 1..=3 {
        let answer = server.get("/cut").await;
        assert_eq!(answer.status, 500);
        assert!(!answer.body.contains("all is well"));
        assert_eq!(server.get(&format!("/insert/{id}/200")).await.status, 200);
    }

    assert_eq!(rig.rows().await, 3);
    rig.until_whole().await;
}

#[tokio::test]
async fn connections_that_are_killed_between_two_requests_are_not_noticed_by_the_clients() {
    let check = |builder: cenote_sqlx::Builder<_>| builder.check_after_idle(Duration::ZERO);
    let rig = Rig::with("killed", check).await;
    let server = transactional(&rig);

    for id in 1..=3 {
        assert_eq!(server.get(&format!("/insert/{id}/200")).await.status, 200);
        assert!(rig.kill_all().await > 0);
    }

    assert_eq!(rig.rows().await, 3);
    rig.until_whole().await;
}

#[tokio::test]
async fn requests_are_served_again_after_the_server_was_killed_and_started_again() {
    let mut postgres = cenote_servers::postgres::start().unwrap();
    let rig = Rig::without_db("restart");
    let db = Db::postgres(postgres.url()).max_size(4).build().unwrap();
    rig.connect(db).await;
    let server = transactional(&rig);
    assert_eq!(server.get("/insert/1/200").await.status, 200);
    let waiting = tokio::spawn({
        let client = server.client;
        async move { client.get("/insert_and_wait/2").await.status }
    });
    rig.until_at_gate(1).await;

    postgres.kill().unwrap();
    rig.open_gate(1);

    assert_eq!(waiting.await.unwrap(), 500, "it was not committed");
    let status = server.get("/insert/3/200").await.status;
    assert!([500, 503].contains(&status), "{status}");

    postgres.restart().unwrap();

    let mut served = 0;
    for _ in 0..500 {
        served = server.get("/insert/4/200").await.status;
        if served == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(served, 200);
    assert_eq!(rig.rows().await, 2);
    rig.until_whole().await;
}
