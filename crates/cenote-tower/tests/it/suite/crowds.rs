//! Many clients at once.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::get;
use cenote_tower::{Problem, ScopeLayer, TransactionalLayer};

use super::Rig;
use crate::client::{get_on, serve, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_hang_up_leave_the_pool_whole() {
    let rig = Rig::with("hang_up", |builder| builder.max_size(10)).await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(rig.routes().layer(layer).layer(ScopeLayer::new())).await;
    let pool = rig.db.pool();

    for round in 1..=2 {
        let mut clients = Vec::new();
        for nth in 0..200 {
            clients.push(server.send(&format!("/insert_and_wait/{nth}")).await);
        }
        // Some are in their transaction, the others in line.
        rig.until_at_gate(round).await;
        until("some wait", || pool.status().in_use > 0).await;
        drop(clients);
        rig.until_whole().await;
    }

    assert_eq!(rig.rows().await, 0);
    assert_eq!(server.get("/insert/1/200").await.status, 200);
    assert_eq!(rig.rows().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_requests_in_flight_are_served_by_ten_connections() {
    const CLIENTS: usize = 2000;
    let rig = Rig::with("crowd", |builder| {
        builder
            .max_size(10)
            .acquire_timeout(Duration::from_secs(120))
    })
    .await;
    let routes = rig
        .routes()
        .route("/crowd/{id}", get(crowd).with_state(rig.clone()));
    let server = serve(routes.layer(ScopeLayer::new())).await;
    let mut clients = Vec::new();
    for id in 0..CLIENTS {
        let stream = server.connect().await; // one by one, for the line at the listener is short
        let path = format!("/crowd/{id}");
        clients.push(tokio::spawn(async move { get_on(stream, &path).await }));
    }
    rig.until_at_gate(CLIENTS).await;

    rig.gate.add_permits(CLIENTS);
    for (id, client) in clients.into_iter().enumerate() {
        let answer = client.await.unwrap().unwrap();
        assert_eq!((answer.status.as_u16(), answer.body), (200, id.to_string()));
    }

    let status = rig.db.pool().status();
    assert!(status.opened <= 10 && status.timed_out == 0, "{status:?}");
    rig.until_whole().await;
}

/// All are in flight before the first of them asks the database.
async fn crowd(State(rig): State<Rig>, Path(id): Path<i64>) -> Result<String, Problem> {
    rig.wait_at_gate().await;
    let sql = format!("SELECT count(*) + {id} FROM {{}}");
    Ok(rig.number(&sql).await?.to_string())
}
