//! Many clients at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use cenote_tower::{Problem, ScopeLayer, TransactionalLayer};

use super::Rig;
use super::world;
use crate::client::{get_on, serve, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_disconnect_leave_no_transaction_open() {
    const CLIENTS: usize = 200;
    let rig = Rig::with("hang_up", |builder| builder.max_size(10)).await;
    let (watcher, _home) = world::builder("cenote_watcher");
    let watcher = watcher.build().unwrap();
    let open = async || -> i64 {
        let open = sqlx::query_scalar(rig.sql(world::OPEN));
        open.fetch_one(&watcher).await.unwrap()
    };
    let inside = Arc::new(AtomicUsize::new(0));
    let layer = TransactionalLayer::new(rig.db.clone());
    let routes = rig.routes().layer(layer).layer(ScopeLayer::new());
    let server = serve(routes.layer(from_fn_with_state(Arc::clone(&inside), counted))).await;
    let inside = || inside.load(Ordering::SeqCst);

    for _ in 0..2 {
        let at_gate = rig.at_gate.load(Ordering::SeqCst);
        let mut clients = Vec::new();
        for nth in 0..CLIENTS {
            clients.push(server.send(&format!("/insert_and_wait/{nth}")).await);
        }
        // Some requests are in their transaction, the others wait for a connection.
        until("all are inside", || inside() == CLIENTS).await;
        rig.until_at_gate(at_gate + world::WRITERS).await;
        assert_eq!(open().await, world::OPEN_WRITERS);
        drop(clients);
        until("no request is inside", || inside() == 0).await;
        rig.until_whole().await;
        assert_eq!(open().await, 0);
    }

    assert_eq!(rig.rows().await, 0);
    assert_eq!(server.get("/insert/1/200").await.status, 200);
    assert_eq!(rig.rows().await, 1);
}

/// Counts a request until it has ended in any way.
struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn counted(State(count): State<Arc<AtomicUsize>>, request: Request, next: Next) -> Response {
    count.fetch_add(1, Ordering::SeqCst);
    let _inside = Inside(count);
    next.run(request).await
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
        // One by one, because the backlog of the listener is short.
        let stream = server.connect().await;
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
    // The writer of SQLite has a connection of its own.
    let most = 10 + u64::from(rig.db.pool().annex().is_some());
    assert!(status.opened <= most && status.timed_out == 0, "{status:?}");
    rig.until_whole().await;
}

/// Waits at the gate before it uses the database, so that all requests are in flight.
async fn crowd(State(rig): State<Rig>, Path(id): Path<i64>) -> Result<String, Problem> {
    rig.wait_at_gate().await;
    let sql = format!("SELECT count(*) + {id} FROM {{}}");
    Ok(rig.number(&sql).await?.to_string())
}
