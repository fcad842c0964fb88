//! Servers that stop, and pools that are closed.

use std::time::Duration;

use futures_util::future::join_all;

use crate::handlers::transactional;
use crate::rig::Rig;

#[tokio::test]
async fn a_closed_pool_is_a_500_and_other_routes_are_served() {
    let rig = Rig::new("closed").await;
    let server = transactional(&rig);

    rig.db().close().await;

    let answer = server.get("/rows").await;
    assert_eq!(answer.status, 500);
    assert!(!answer.headers.contains_key("retry-after"));
    assert_eq!(server.get("/plain").await.status, 200);
}

#[tokio::test]
async fn a_graceful_stop_commits_the_requests_in_flight_and_leaves_nothing_lent() {
    let rig = Rig::new("stops").await;
    let server = transactional(&rig);
    let requests: Vec<_> = (1..=3)
        .map(|id| {
            let client = server.client;
            tokio::spawn(async move { client.get(&format!("/insert_and_wait/{id}")).await.status })
        })
        .collect();
    rig.until_at_gate(3).await;

    let ((), answers) = tokio::join!(server.stop(), async {
        rig.open_gate(3);
        join_all(requests).await
    });

    for answer in answers {
        assert_eq!(answer.unwrap(), 200);
    }
    assert_eq!(rig.rows_seen_from_outside().await, 3);
    let left = rig.db().pool().close_within(Duration::from_secs(10)).await;
    assert_eq!(left.leases.len(), 0);
}

#[tokio::test]
async fn the_pool_outlives_the_workers_that_opened_its_connections() {
    let rig = Rig::new("outlives").await;
    for id in 1..=2 {
        let server = transactional(&rig);
        assert_eq!(server.get(&format!("/insert/{id}/200")).await.status, 200);
        server.stop().await;
    }

    assert_eq!(rig.rows().await, 2);
    rig.until_whole().await;
}
