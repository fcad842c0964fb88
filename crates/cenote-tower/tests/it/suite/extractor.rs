//! The extractor `Tx`.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use cenote_tower::{Problem, ScopeLayer, TransactionalLayer, Tx};
use http::StatusCode;

use super::Rig;
use super::world::DB;
use crate::client::serve;

/// Inserts a row through `rig.db`, which is part of the transaction too.
async fn insert(
    State(rig): State<Rig>,
    Path((id, status)): Path<(i32, u16)>,
    tx: Tx<DB>,
) -> Result<StatusCode, Problem> {
    assert!(tx.in_transaction() && rig.db.in_transaction());
    rig.insert(id).await?;
    let sql = rig.sql("SELECT count(*) FROM {}");
    let _: i64 = sqlx::query_scalar(sql).fetch_one(&*tx).await?;
    Ok(StatusCode::from_u16(status).unwrap())
}

fn routes(rig: &Rig) -> Router {
    Router::new()
        .route("/tx/{id}/{status}", get(insert))
        .route("/plain", get(|| async { "hello" }))
        .with_state(rig.clone())
}

#[tokio::test]
async fn a_transaction_on_demand_begins_with_its_extractor() {
    let rig = Rig::new("on_demand").await;
    let layer = TransactionalLayer::new(rig.db.clone()).on_demand();
    // Without a scope layer, with one outside, and with one inside.
    let apps = [
        routes(&rig).layer(layer.clone()),
        routes(&rig).layer(layer.clone()).layer(ScopeLayer::new()),
        routes(&rig).layer(ScopeLayer::new()).layer(layer),
    ];

    for (nth, app) in (1..).zip(apps) {
        let server = serve(app).await;
        let acquired = rig.db.pool().status().acquired;
        assert_eq!(server.get("/plain").await.body, "hello");
        assert_eq!(server.get("/tx/not-a-number/200").await.status, 400);
        assert_eq!(
            rig.db.pool().status().acquired,
            acquired,
            "nothing was acquired"
        );

        assert_eq!(server.get(&format!("/tx/{nth}/200")).await.status, 200);
        assert_eq!(server.get(&format!("/tx/9{nth}/409")).await.status, 409);
        assert_eq!(rig.rows().await, nth);
    }
    rig.until_whole().await;
}

#[tokio::test]
async fn the_extractor_takes_part_in_a_transaction_that_has_begun() {
    let rig = Rig::new("is_there").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(routes(&rig).layer(layer)).await;

    assert_eq!(server.get("/tx/1/200").await.status, 200);
    assert_eq!(server.get("/tx/2/500").await.status, 500);

    assert_eq!(rig.rows().await, 1);
}

#[tokio::test]
async fn without_its_layer_the_extractor_is_a_500_that_names_the_layer() {
    let rig = Rig::new("no_layer").await;
    let server = serve(routes(&rig).layer(ScopeLayer::new())).await;

    let answer = server.get("/tx/1/200").await;

    assert_eq!(answer.status, 500);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    let named = answer.body.contains("TransactionalLayer");
    assert_eq!(named, cfg!(debug_assertions), "{}", answer.body);
    assert_eq!(rig.rows().await, 0);
}

#[tokio::test]
async fn in_another_task_than_its_layer_the_extractor_is_a_500() {
    let rig = Rig::new("elsewhere").await;
    let layer = TransactionalLayer::new(rig.db.clone()).on_demand();
    let server = serve(routes(&rig).layer(from_fn(spawn)).layer(layer)).await;

    let answer = server.get("/tx/1/200").await;

    assert_eq!(answer.status, 500);
    assert_eq!(answer.body.contains("another task"), cfg!(debug_assertions));
    assert_eq!(rig.rows().await, 0);
    rig.until_whole().await;
}

async fn spawn(request: Request, next: Next) -> Response {
    tokio::spawn(next.run(request)).await.unwrap()
}

#[tokio::test]
async fn a_transaction_on_demand_that_cannot_begin_is_a_503() {
    let rig = Rig::new("cannot_begin").await;
    let layer = TransactionalLayer::new(rig.db.clone()).on_demand();
    let server = serve(routes(&rig).layer(layer)).await;

    rig.db.pool().breaker().trip();
    assert_eq!(server.get("/tx/1/200").await.status, 503);
    rig.db.pool().breaker().reset();

    assert_eq!(server.get("/tx/1/200").await.status, 200);
    rig.until_whole().await;
}
