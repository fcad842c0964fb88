//! `#[transactional]` handlers under the layers of this crate.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cenote_sqlx::transactional;
use cenote_tower::{Problem, ScopeLayer};
use http::StatusCode;
use tower::Layer;

use super::Rig;
use super::saturation::assert_busy;
use crate::client::serve;
use crate::reports::reporting;

type Order = Path<(i32, u16)>;

#[transactional(rig.db)]
async fn by_response(State(rig): State<Rig>, Path((id, status)): Order) -> Response {
    rig.insert(id).await.unwrap();
    StatusCode::from_u16(status).unwrap().into_response()
}

#[transactional(rig.db)]
async fn by_anything(State(rig): State<Rig>, Path((id, status)): Order) -> impl IntoResponse {
    rig.insert(id).await.unwrap();
    (StatusCode::from_u16(status).unwrap(), "said")
}

#[transactional(rig.db)]
async fn by_error(
    State(rig): State<Rig>,
    Path((id, status)): Order,
) -> Result<StatusCode, Problem> {
    rig.insert(id).await?;
    Ok(StatusCode::from_u16(status).unwrap())
}

/// Inserts a row that violates a deferred constraint, so that the commit fails.
#[transactional(rig.db)]
async fn orphan(State(rig): State<Rig>) -> Response {
    let orphan = "INSERT INTO {}_child (id) VALUES (7)";
    rig.run(orphan).await.unwrap();
    "this must not be sent".into_response()
}

fn routes(rig: &Rig) -> Router {
    Router::new()
        .route("/by_response/{id}/{status}", get(by_response))
        .route("/by_anything/{id}/{status}", get(by_anything))
        .route("/by_error/{id}/{status}", get(by_error))
        .route("/orphan", get(orphan))
        .with_state(rig.clone())
        .layer(ScopeLayer::new())
}

const WAYS: [&str; 3] = ["by_response", "by_anything", "by_error"];

#[tokio::test]
async fn an_exhausted_pool_is_a_503_in_problem_json() {
    let rig = Rig::with("attribute_busy", |builder| {
        builder.max_size(1).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let (problems, told) = reporting();
    let problems = problems.retry_after(Duration::from_secs(7));
    let inside = serve(routes(&rig).layer(problems.clone())).await;
    // Here the empty responses have a `content-length` before the layer sees them.
    let around = Router::new().fallback_service(problems.layer(routes(&rig)));
    let around = serve(around).await;
    let held = rig.db.acquire().await.unwrap();

    for way in WAYS {
        for server in [&inside, &around] {
            assert_busy(&server.get(&format!("/{way}/1/200")).await, 7);
            let problem = told.try_recv().unwrap();
            assert_eq!(problem.holders()[0].count, 1, "{}", problem.report());
        }
    }
    drop(held);

    for (id, way) in (1..).zip(WAYS) {
        let status = async |id, status| inside.get(&format!("/{way}/{id}/{status}")).await.status;
        assert_eq!(status(id, 201).await, 201);
        assert_eq!(status(id + 9, 409).await, 409);
        assert_eq!(rig.rows().await, i64::from(id));
    }
    assert!(told.try_recv().is_err(), "there was a second report");
    rig.until_whole().await;
}

#[tokio::test]
async fn a_commit_that_fails_is_a_500_in_problem_json_with_the_cause_in_the_report() {
    let rig = Rig::new("attribute_orphan").await;
    let (problems, told) = reporting();
    // Two layers, so that a second report would show.
    let server = serve(routes(&rig).layer(problems.clone()).layer(problems)).await;

    let answer = server.get("/orphan").await;

    assert_eq!(answer.status, 500);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert!(!answer.headers.contains_key("retry-after"));
    assert!(answer.body.contains("could not be served"), "{answer:?}");
    let problem = told.try_recv().unwrap();
    let report = problem.report().to_lowercase();
    assert!(report.contains("foreign key"), "{report}");
    assert!(told.try_recv().is_err());
    rig.until_whole().await;
}
