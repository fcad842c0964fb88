//! The request guard `Connection`.

use crate::client::until;
use crate::rig::{Rig, assert_apart};
use crate::server::{config_of, serve};

#[tokio::test]
async fn a_request_without_a_guard_acquires_nothing() {
    let rig = Rig::without_db("plain");
    let server = serve(config_of(&rig), &rig).await;
    let before = rig.db().pool().status().acquired;

    for path in ["/plain", "/in/plain"] {
        assert_eq!(server.get(path).await.body, "hello");
    }

    assert_eq!(rig.db().pool().status().acquired, before);
}

#[tokio::test]
async fn concurrent_requests_have_a_connection_each() {
    let rig = Rig::without_db("concurrent");
    let server = serve(config_of(&rig), &rig).await;
    let paths = ["/in/backends", "/guarded_twice"].repeat(2);
    let requests = paths.into_iter().map(|path| {
        let client = server.client;
        tokio::spawn(async move { client.get(path).await.body })
    });
    let requests: Vec<_> = requests.collect();
    rig.until_at_gate(4).await;

    rig.open_gate(4);

    let mut seen = Vec::new();
    for request in requests {
        seen.push(request.await.unwrap());
    }
    assert_apart(&seen);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_dry_pool_is_a_503() {
    let rig = Rig::without_db("dry");
    let config = config_of(&rig)
        .merge(("databases.orders.max_connections", 2))
        .merge(("databases.orders.min_connections", 2)) // so that no holder waits for an open
        .merge(("databases.orders.connect_timeout", 1));
    let server = serve(config, &rig).await;
    let holders = [server.send("/hold").await, server.send("/in/hold").await];
    rig.until_at_gate(2).await;

    let answers = [
        server.get("/guarded").await,
        server.get("/in/guarded").await,
    ];

    assert!(
        answers.iter().all(|answer| answer.status == 503),
        "{answers:?}"
    );
    assert_eq!(server.get("/plain").await.status, 200);
    rig.open_gate(2);
    until("the holders are done", || {
        rig.db().pool().status().in_use == 0
    })
    .await;
    assert_eq!(server.get("/guarded").await.status, 200);
    drop(holders);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_tripped_breaker_is_a_503() {
    let rig = Rig::without_db("tripped");
    let server = serve(config_of(&rig), &rig).await;

    rig.db().pool().breaker().trip();

    assert_eq!(server.get("/guarded").await.status, 503);
    rig.db().pool().breaker().reset();
    assert_eq!(server.get("/guarded").await.status, 200);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_guard_gives_its_connection_back_after_a_panic() {
    let rig = Rig::without_db("guard_panics");
    let server = serve(config_of(&rig), &rig).await;

    for path in ["/hold_and_panic", "/in/hold_and_panic"].repeat(5) {
        assert_eq!(server.get(path).await.status, 500);
    }

    rig.until_whole().await;
}

#[tokio::test]
async fn a_handler_whose_client_has_disconnected_runs_to_its_end() {
    let rig = Rig::without_db("guard_disconnects");
    let server = serve(config_of(&rig), &rig).await;
    let clients = [
        server.send("/hold").await,
        server.send("/insert_and_wait/1").await,
        server.send("/in/insert_and_wait/2").await,
    ];
    rig.until_at_gate(3).await;

    drop(clients);
    rig.open_gate(3);

    rig.until_whole().await;
    assert_eq!(rig.rows().await, 2, "Rocket does not cancel handlers");
}

#[tokio::test]
async fn a_client_that_disconnects_in_the_body_gives_its_connection_back() {
    let rig = Rig::without_db("body_disconnects");
    let server = serve(config_of(&rig), &rig).await;
    let response = server.open("/streams").await.unwrap();
    rig.until_at_gate(1).await;
    assert_eq!(rig.db().pool().status().in_use, 1);

    drop(response);
    rig.open_gate(1_000_000);

    rig.until_whole().await;
}
