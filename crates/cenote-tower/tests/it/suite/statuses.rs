//! The statuses of errors of sqlx.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use cenote_tower::{Problem, ProblemLayer};
use http::StatusCode;

use super::Rig;
use crate::client::{Answer, serve};

async fn missing(State(rig): State<Rig>) -> Result<String, Problem> {
    let row: i64 = rig.number("SELECT id FROM {} WHERE id = -7").await?;
    Ok(row.to_string())
}

async fn twice(State(rig): State<Rig>) -> Result<&'static str, Problem> {
    rig.insert(1).await?;
    rig.insert(1).await?;
    Ok("never")
}

async fn orphan(State(rig): State<Rig>) -> Result<&'static str, Problem> {
    rig.run("INSERT INTO {}_strict (id) VALUES (7)").await?;
    Ok("never")
}

async fn wrong(State(rig): State<Rig>) -> Result<&'static str, Problem> {
    rig.run("SELEKT").await?;
    Ok("never")
}

async fn rig(name: &str) -> (Rig, Router) {
    let rig = Rig::with(name, |builder| builder.max_size(2)).await;
    rig.run("CREATE TABLE {}_strict (id INTEGER REFERENCES {} (id))")
        .await
        .unwrap();
    let routes = Router::new()
        .route("/missing", get(missing))
        .route("/twice", get(twice))
        .route("/orphan", get(orphan))
        .route("/wrong", get(wrong))
        .with_state(rig.clone());
    (rig, routes)
}

fn assert_tells_nothing(answer: &Answer) {
    let body = answer.body.to_lowercase();
    for secret in ["cenote_", "key", "constraint", "select"] {
        assert!(!body.contains(secret), "{answer:?}");
    }
}

#[tokio::test]
async fn errors_of_sqlx_have_fitting_statuses() {
    let (rig, routes) = rig("fitting").await;
    let server = serve(routes.layer(ProblemLayer::new())).await;

    for (path, status) in [
        ("/missing", 404),
        ("/twice", 409),
        ("/orphan", 409),
        ("/wrong", 500),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
        assert_tells_nothing(&answer);
    }
    rig.run("DROP TABLE {}_strict").await.unwrap();
}

#[tokio::test]
async fn the_statuses_of_errors_of_sqlx_can_be_set_in_one_place() {
    let (rig, routes) = rig("set_in_one_place").await;
    let layer = ProblemLayer::new().sqlx_errors(|error| match error {
        sqlx::Error::RowNotFound => Some(Problem::new(StatusCode::GONE, "no longer here")),
        sqlx::Error::Database(error) if error.is_unique_violation() => {
            let busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "later");
            Some(busy.with_retry_after(Duration::from_secs(77)))
        }
        _ => None,
    });
    let server = serve(routes.layer(layer)).await;

    let gone = server.get("/missing").await;
    assert_eq!(gone.status, 410);
    assert!(gone.body.contains("no longer here"), "{gone:?}");
    let later = server.get("/twice").await;
    assert_eq!(
        (later.status.as_u16(), &later.headers["retry-after"]),
        (503, &"77".parse().unwrap())
    );
    assert_eq!(server.get("/orphan").await.status, 409, "it was not set");
    rig.run("DROP TABLE {}_strict").await.unwrap();
}
