//! Tests for PostgreSQL alone: connections that the server ends, and isolation levels.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{MethodRouter, get};
use cenote::CloseReason;
use cenote_sqlx::{Db, Isolation};
use cenote_tower::{Problem, ScopeLayer, TransactionalLayer};
use http::StatusCode;
use sqlx::Postgres;

use crate::client::{Server, serve};
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

/// A pool of one connection, whose name is that of the test.
fn one(name: &str) -> Db<Postgres> {
    world::builder(name).0.max_size(1).build().unwrap()
}

fn routes(db: &Db<Postgres>) -> Router {
    Router::new()
        .route("/cut", get(cut))
        .route("/backend", get(backend))
        .with_state(db.clone())
}

type Layer = TransactionalLayer<Postgres>;

/// Serves a handler at `/` in a transaction.
async fn transactional(
    db: &Db<Postgres>,
    handler: MethodRouter<Db<Postgres>>,
    customize: impl FnOnce(Layer) -> Layer,
) -> Server {
    let routes = Router::new().route("/", handler).with_state(db.clone());
    serve(routes.layer(customize(TransactionalLayer::new(db.clone())))).await
}

#[tokio::test]
async fn a_connection_that_is_lost_is_not_lent_again_and_the_pool_does_not_shrink() {
    let db = one("cenote_lost");
    let server = serve(routes(&db).layer(ScopeLayer::new())).await;

    for nth in 1..=3 {
        let before = server.get("/backend").await.body;
        assert_eq!(server.get("/cut").await.status, 500);
        assert_ne!(server.get("/backend").await.body, before);
        assert_eq!(db.pool().status().closes.by(CloseReason::Broken), nth);
    }
}

#[tokio::test]
async fn the_error_and_not_the_status_decides_whether_a_connection_is_closed() {
    let db = one("cenote_shrug");
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
        assert_eq!(db.pool().status().closes.by(CloseReason::Broken), nth);
    }
}

#[tokio::test]
async fn a_transaction_whose_connection_is_lost_is_a_500() {
    let db = one("cenote_lost_in_transaction");
    // The handler ignores the error, so the layer must notice it.
    let careless = |State(db): State<Db<Postgres>>| async move {
        let _ = cut(State(db)).await;
        "all is well"
    };
    let server = transactional(&db, get(careless), |layer| layer).await;

    let answer = server.get("/").await;

    assert_eq!(answer.status, 500);
    assert!(!answer.body.contains("all is well"));
    let one: i32 = sqlx::query_scalar("SELECT 1").fetch_one(&db).await.unwrap();
    assert_eq!(one, 1);
}

#[tokio::test]
async fn the_transaction_has_the_isolation_level_of_the_layer() {
    let db = one("cenote_isolation");
    let shows = |State(db): State<Db<Postgres>>| async move {
        let show = sqlx::query_scalar("SHOW transaction_isolation");
        Ok::<String, Problem>(show.fetch_one(&db).await?)
    };
    let serializable = |layer: Layer| layer.isolation(Isolation::Serializable);
    let server = transactional(&db, get(shows), serializable).await;

    assert_eq!(server.get("/").await.body, "serializable");
}

#[tokio::test]
async fn a_rollback_that_fails_does_not_change_the_response() {
    let db = one("cenote_rollback_fails");
    let handler = |State(db): State<Db<Postgres>>| async move {
        let _ = cut(State(db)).await;
        Err::<(), _>(Problem::new(StatusCode::CONFLICT, "no chairs left"))
    };
    let server = transactional(&db, get(handler), |layer| layer).await;

    let answer = server.get("/").await;

    assert_eq!(answer.status, 409);
    assert!(answer.body.contains("no chairs left"));
}

#[tokio::test]
async fn a_conflict_with_another_transaction_is_a_503() {
    let db = one("cenote_conflict");
    let conflict = |State(db): State<Db<Postgres>>| async move {
        let conflict = "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$";
        sqlx::raw_sql(conflict).execute(&db).await?;
        Ok::<_, Problem>("never")
    };
    let server = transactional(&db, get(conflict), |layer| layer).await;

    let answer = server.get("/").await;

    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    assert!(answer.body.contains("try again later"), "{}", answer.body);
}

/// Runs this statement, with the table of this process for `{}`.
async fn run(db: &Db<Postgres>, sql: &str) {
    let sql = sql.replace("{}", &format!("cenote_ssi_{}", std::process::id()));
    let run = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(db);
    run.await.unwrap();
}

#[tokio::test]
async fn a_conflict_that_shows_at_the_commit_is_a_503() {
    let db = world::builder("cenote_conflict_at_commit").0.max_size(3);
    let db = db.build().unwrap();
    run(&db, "CREATE TABLE {} (id INTEGER)").await;
    // Each of two serializable transactions reads what the other one writes.
    let gate = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    let writes = move |State(db): State<Db<Postgres>>| async move {
        run(&db, "SELECT count(*) FROM {}").await;
        gate.wait().await;
        run(&db, "INSERT INTO {} VALUES (1)").await;
        gate.wait().await;
        "written"
    };
    let serializable = |layer: Layer| layer.isolation(Isolation::Serializable);
    let server = transactional(&db, get(writes), serializable).await;

    let (one, two) = tokio::join!(server.get("/"), server.get("/"));

    run(&db, "DROP TABLE {}").await;
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503], "{one:?} {two:?}");
}
