//! Which faults close a connection, and which do not.

use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn;
use axum::routing::get;
use cenote_tower::{Problem, ScopeLayer};
use http::StatusCode;

use super::Rig;
use super::transactions::limit;
use super::world;
use crate::client::serve;

#[tokio::test]
async fn a_request_that_touches_no_database_acquires_nothing() {
    let rig = Rig::new("touches_nothing").await;
    let before = rig.db.pool().status();
    let server = serve(rig.routes().layer(ScopeLayer::new())).await;

    for _ in 0..10 {
        assert_eq!(server.get("/plain").await.status, 200);
    }

    let after = rig.db.pool().status();
    assert_eq!(
        (after.acquired, after.waited),
        (before.acquired, before.waited)
    );
}

#[tokio::test]
async fn errors_of_handlers_and_statements_close_no_connection() {
    let rig = Rig::with("innocent", |builder| builder.max_size(1)).await;
    let routes = rig
        .routes()
        .route("/syntax", get(syntax).with_state(rig.clone()));
    let server = serve(routes.layer(ScopeLayer::new())).await;

    for nth in 0..20 {
        assert_eq!(server.get(&format!("/insert/{nth}/404")).await.status, 404);
        assert_eq!(
            server.get(&format!("/insert/{nth}/200")).await.status,
            409,
            "a duplicate key"
        );
        assert_eq!(server.get("/insert/x/422").await.status, 400);
        assert_eq!(server.get("/syntax").await.status, 500);
    }

    let status = rig.db.pool().status();
    assert_eq!((status.opened, status.closes.total()), (1, 0), "{status:?}");
}

async fn syntax(State(rig): State<Rig>) -> Result<&'static str, Problem> {
    rig.run("SELEKT 1").await?;
    Ok("never")
}

#[tokio::test]
async fn a_buggy_handler_cannot_shrink_the_pool() {
    let rig = Rig::with("buggy", |builder| builder.max_size(2)).await;
    let routes = rig
        .routes()
        .route("/buggy", get(buggy).with_state(rig.clone()));
    let server = serve(routes.layer(ScopeLayer::new())).await;

    for _ in 0..20 {
        assert!(server.try_get("/buggy").await.is_err());
    }

    rig.until_whole().await;
    assert_eq!(server.get("/rows").await.body, "0");
}

/// Begins a transaction by SQL, changes the session, and panics while it holds a lease.
async fn buggy(State(rig): State<Rig>) -> &'static str {
    rig.run("BEGIN").await.unwrap();
    rig.insert(1).await.unwrap();
    rig.run(world::CHANGE).await.unwrap();
    let _held = rig.db.acquire().await.unwrap();
    panic!("a handler with a bug");
}

#[tokio::test]
async fn a_request_that_is_cut_off_gives_back_what_its_scope_held() {
    let rig = Rig::with("cut_off", |builder| builder.max_size(2)).await;
    let routes = Router::new()
        .route("/", get(begin_and_wait))
        .with_state(rig.clone())
        .layer(ScopeLayer::new());
    let at_gate = || rig.at_gate.load(Ordering::SeqCst);

    let limited = serve(routes.clone().layer(from_fn(limit))).await;
    while at_gate() == 0 {
        assert_eq!(limited.get("/").await.status, 504);
    }
    rig.until_whole().await;

    let server = serve(routes).await;
    let before = at_gate();
    let client = server.send("/").await;
    rig.until_at_gate(before + 1).await;
    // On SQLite the transaction of a text holds the right to write, which is a lease of the writer.
    let writer = usize::from(rig.db.pool().annex().is_some());
    assert_eq!(rig.db.pool().status().in_use, 1 + writer);
    drop(client);
    rig.until_whole().await;
    assert_eq!(rig.rows().await, 0);
}

/// Never ends the transaction that it begins.
async fn begin_and_wait(State(rig): State<Rig>) -> Result<&'static str, Problem> {
    rig.run("BEGIN").await?;
    rig.insert(1).await?;
    rig.run(world::CHANGE).await?;
    rig.wait_at_gate().await;
    Ok("never")
}

#[tokio::test]
async fn a_changed_session_stays_with_its_request() {
    let rig = Rig::with("changed", |builder| builder.max_size(2)).await;
    let changing = |State(rig): State<Rig>| async move {
        rig.run(world::CHANGE).await?;
        rig.at_gate.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Problem>(rig.number(world::CHANGED).await?.to_string())
    };
    let looking = |State(rig): State<Rig>| async move {
        Ok::<_, Problem>(rig.number(world::CHANGED).await?.to_string())
    };
    let routes = Router::new()
        .route("/change", get(changing))
        .route("/look", get(looking))
        .with_state(rig.clone());
    let server = serve(routes.layer(ScopeLayer::new())).await;

    for _ in 0..5 {
        assert_eq!(server.get("/change").await.body, "1");
        assert_eq!(server.get("/look").await.body, "0");
    }

    assert_eq!(server.get("/nowhere").await.status, StatusCode::NOT_FOUND);
    rig.until_whole().await;
}
