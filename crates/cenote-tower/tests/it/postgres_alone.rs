//! PostgreSQL alone: connections that the server cuts, and options that only it has.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use cenote::Reason;
use cenote_sqlx::{Db, Isolation};
use cenote_tower::{Problem, ScopeLayer, TransactionalLayer};
use http::StatusCode;
use sqlx::Postgres;

use crate::client::serve;
use crate::world::postgres as world;

async fn cut(State(db): State<Db<Postgres>>) -> Result<&'static str, Problem> {
    sqlx::query("SELECT pg_terminate_backend(pg_backend_pid())")
        .execute(&db)
        .await?;
    Ok("never")
}

async fn backend(State(db): State<Db<Postgres>>) -> Result<String, Problem> {
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&db)
        .await?;
    Ok(pid.to_string())
}

fn routes(db: &Db<Postgres>) -> Router {
    Router::new()
        .route("/cut", get(cut))
        .route("/backend", get(backend))
        .with_state(db.clone())
}

#[tokio::test]
async fn a_connection_that_is_lost_is_not_lent_again_and_the_pool_does_not_shrink() {
    let db = world::builder("cenote_lost").0.max_size(1).build().unwrap();
    let server = serve(routes(&db).layer(ScopeLayer::new())).await;

    for nth in 1..=3 {
        let before = server.get("/backend").await.body;
        assert_eq!(server.get("/cut").await.status, 500);
        assert_ne!(server.get("/backend").await.body, before);
        assert_eq!(db.pool().status().closed.by(Reason::Broken), nth);
    }
}

#[tokio::test]
async fn what_is_poisoned_is_up_to_the_error_and_not_to_the_status() {
    let db = world::builder("cenote_shrug")
        .0
        .max_size(1)
        .build()
        .unwrap();
    let shrugs = |State(db): State<Db<Postgres>>, Path(status): Path<u16>| async move {
        let _ = cut(State(db)).await;
        StatusCode::from_u16(status).unwrap()
    };
    let shrugs = get(shrugs).with_state(db.clone());
    let routes = routes(&db).route("/shrug/{status}", shrugs);
    let server = serve(routes.layer(ScopeLayer::new())).await;

    for (nth, status) in (1..).zip([200, 404, 500]) {
        assert_eq!(server.get(&format!("/shrug/{status}")).await.status, status);
        assert_eq!(server.get("/backend").await.status, 200);
        assert_eq!(db.pool().status().closed.by(Reason::Broken), nth);
    }
}

#[tokio::test]
async fn a_transaction_whose_connection_is_lost_is_a_500() {
    let db = world::builder("cenote_lost_in_transaction").0;
    let db = db.max_size(1).build().unwrap();
    // The handler does not care about the error, so the layer must.
    let careless = |State(db): State<Db<Postgres>>| async move {
        let _ = cut(State(db)).await;
        "all is well"
    };
    let routes = Router::new()
        .route("/", get(careless))
        .with_state(db.clone());
    let server = serve(routes.layer(TransactionalLayer::new(db.clone()))).await;

    let answer = server.get("/").await;

    assert_eq!(answer.status, 500);
    assert!(!answer.body.contains("all is well"));
    let one: i32 = sqlx::query_scalar("SELECT 1").fetch_one(&db).await.unwrap();
    assert_eq!(one, 1);
}

#[tokio::test]
async fn the_isolation_of_the_layer_is_that_of_the_transaction() {
    let db = world::builder("cenote_isolation").0.build().unwrap();
    let shows = |State(db): State<Db<Postgres>>| async move {
        let show = sqlx::query_scalar("SHOW transaction_isolation");
        Ok::<String, Problem>(show.fetch_one(&db).await?)
    };
    let routes = Router::new().route("/", get(shows)).with_state(db.clone());
    let layer = TransactionalLayer::new(db.clone()).isolation(Isolation::Serializable);
    let server = serve(routes.layer(layer)).await;

    assert_eq!(server.get("/").await.body, "serializable");
}

#[tokio::test]
async fn a_rollback_that_fails_does_not_hide_the_answer() {
    let db = world::builder("cenote_rollback_fails").0;
    let db = db.max_size(1).build().unwrap();
    let handler = |State(db): State<Db<Postgres>>| async move {
        let _ = cut(State(db)).await;
        Err::<(), _>(Problem::new(StatusCode::CONFLICT, "somebody was quicker"))
    };
    let routes = Router::new()
        .route("/", get(handler))
        .with_state(db.clone());
    let server = serve(routes.layer(TransactionalLayer::new(db.clone()))).await;

    let answer = server.get("/").await;

    assert_eq!(answer.status, 409);
    assert!(answer.body.contains("somebody was quicker"));
}
