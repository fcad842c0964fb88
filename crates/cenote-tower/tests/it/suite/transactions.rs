//! A transaction per request.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cenote_tower::{Problem, ScopeLayer, Text, TransactionalLayer};
use futures_util::FutureExt;
use http::StatusCode;
use tower::{Layer, ServiceExt, service_fn};

use super::Rig;
use crate::client::{Server, serve, until};
use crate::reports::reporting;

async fn transactional(rig: &Rig) -> Server {
    let layer = TransactionalLayer::new(rig.db.clone());
    serve(rig.routes().layer(layer).layer(ScopeLayer::new())).await
}

#[tokio::test]
async fn a_good_status_commits_and_an_error_status_rolls_back() {
    let rig = Rig::new("by_status").await;
    let server = transactional(&rig).await;

    for (id, status) in [(1, 200), (2, 201), (3, 303), (4, 400), (5, 404), (6, 500)] {
        let answer = server.get(&format!("/insert/{id}/{status}")).await;
        assert_eq!(answer.status, status);
    }

    assert_eq!(rig.rows().await, 3);
    rig.until_whole().await;
}

#[tokio::test]
async fn an_error_of_the_handler_rolls_back_and_is_the_response() {
    let rig = Rig::new("by_value").await;
    let server = transactional(&rig).await;

    let answer = server.get("/insert_and_fail/1").await;

    assert_eq!(answer.status, 409);
    assert!(!answer.body.contains("UNIQUE"), "{}", answer.body);
    assert_eq!(rig.rows().await, 0);
    rig.until_whole().await;
}

#[tokio::test]
async fn an_error_of_the_service_rolls_back_and_passes_unchanged() {
    let rig = Rig::new("by_service").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let inside = rig.clone();
    let service = layer.layer(service_fn(move |_: http::Request<()>| {
        let rig = inside.clone();
        async move {
            rig.insert(1).await?;
            Err::<http::Response<Text>, _>(sqlx::Error::RowNotFound)
        }
    }));

    let error = service.oneshot(http::Request::new(())).await.err();

    assert!(matches!(error, Some(sqlx::Error::RowNotFound)), "{error:?}");
    assert_eq!(rig.rows().await, 0);
}

#[tokio::test]
async fn the_statuses_that_roll_back_can_be_set() {
    let rig = Rig::new("said").await;
    let layer = TransactionalLayer::new(rig.db.clone())
        .rolls_back_if(|status| status.is_server_error() || status == StatusCode::CREATED);
    let server = serve(rig.routes().layer(layer)).await;

    server.get("/insert/1/404").await;
    server.get("/insert/2/201").await;
    server.get("/insert/3/500").await;

    assert_eq!(rig.rows().await, 1);
}

#[tokio::test]
async fn other_connections_see_nothing_before_the_commit() {
    let rig = Rig::new("unseen").await;
    let server = transactional(&rig).await;
    let at_work = server.send("/insert_and_wait/1").await;
    rig.until_at_gate(1).await;

    assert_eq!(rig.rows().await, 0, "the row is visible before the commit");
    rig.gate.add_permits(1);
    let pool = rig.db.pool();
    until("the request has ended", || pool.status().in_use == 0).await;

    assert_eq!(rig.rows().await, 1);
    drop(at_work);
}

#[tokio::test]
async fn a_commit_that_fails_is_a_500_without_the_body() {
    let rig = Rig::new("commit_fails").await;
    let (problems, told) = reporting();
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(rig.routes().layer(layer).layer(problems)).await;

    let answer = server.get("/orphan/7").await;

    assert_eq!(answer.status, 500);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert!(!answer.body.contains("this must not be sent"));
    assert!(
        !answer.body.to_lowercase().contains("foreign"),
        "{answer:?}"
    );
    let problem = told.try_recv().unwrap();
    let report = problem.report();
    assert!(report.contains("was not committed"), "{report}");
    assert!(report.to_lowercase().contains("foreign key"), "{report}");
    assert_eq!(
        rig.number("SELECT count(*) FROM {}_child").await.unwrap(),
        0
    );
    rig.until_whole().await;
}

#[tokio::test]
async fn a_panic_rolls_back_whether_it_is_caught_or_not() {
    let rig = Rig::new("panics").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let routes = rig.routes().layer(layer).layer(ScopeLayer::new());
    let bare = serve(routes.clone()).await;
    let catching = serve(routes.layer(from_fn(catch))).await;

    for id in 0..20 {
        let path = format!("/insert_and_panic/{id}");
        assert!(bare.try_get(&path).await.is_err(), "the connection is cut");
        assert_eq!(catching.get(&path).await.status, 500);
    }

    rig.until_home().await;
    let status = rig.db.pool().status();
    assert_eq!(
        status.closes.total(),
        0,
        "no connection was lost: {status:?}"
    );
    rig.until_whole().await;
    assert_eq!(rig.rows().await, 0);
}

async fn catch(request: Request, next: Next) -> Response {
    let run = std::panic::AssertUnwindSafe(next.run(request));
    let caught = run.catch_unwind().await;
    caught.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

#[tokio::test]
async fn a_timeout_rolls_back() {
    let rig = Rig::new("timeouts").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let routes = rig.routes().layer(layer).layer(ScopeLayer::new());
    let server = serve(routes.layer(from_fn(limit))).await;

    let at_gate = || rig.at_gate.load(Ordering::SeqCst);
    while at_gate() == 0 {
        assert_eq!(server.get("/insert_and_wait/1").await.status, 504);
    }

    rig.until_whole().await;
    assert_eq!(rig.rows().await, 0);
}

/// A time limit. On a busy machine a request may reach it before the gate.
pub(super) async fn limit(request: Request, next: Next) -> Response {
    let run = tokio::time::timeout(Duration::from_millis(100), next.run(request));
    let in_time = run.await;
    in_time.unwrap_or_else(|_| StatusCode::GATEWAY_TIMEOUT.into_response())
}

#[tokio::test]
async fn a_client_that_disconnects_rolls_back() {
    let rig = Rig::new("hangs_up").await;
    let server = transactional(&rig).await;
    let client = server.send("/insert_and_wait/1").await;
    rig.until_at_gate(1).await;

    drop(client);

    rig.until_whole().await;
    assert_eq!(rig.rows().await, 0);
}

#[tokio::test]
async fn a_read_only_transaction_refuses_to_write() {
    let rig = Rig::new("read_only").await;
    let layer = TransactionalLayer::new(rig.db.clone()).read_only();
    let server = serve(rig.routes().layer(layer)).await;

    assert_eq!(server.get("/insert/1/200").await.status, 500);
    assert_eq!(server.get("/rows").await.body, "0");
    rig.until_whole().await;
}

#[tokio::test]
async fn two_databases_in_one_request_have_two_transactions() {
    let (left, right) = (Rig::new("left").await, Rig::new("right").await);
    let insert = |State((left, right)): State<(Rig, Rig)>, Path((id, status))| async move {
        assert!(left.db.in_transaction() && right.db.in_transaction());
        left.insert(id).await?;
        right.insert(id).await?;
        Ok::<_, Problem>(StatusCode::from_u16(status).unwrap())
    };
    let routes = Router::new()
        .route("/{id}/{status}", get(insert))
        .with_state((left.clone(), right.clone()))
        .layer(TransactionalLayer::new(left.db.clone()))
        .layer(TransactionalLayer::new(right.db.clone()));
    let server = serve(routes.layer(ScopeLayer::new())).await;

    assert_eq!(server.get("/1/200").await.status, 200);
    assert_eq!(server.get("/2/409").await.status, 409);

    assert_eq!((left.rows().await, right.rows().await), (1, 1));
    left.until_whole().await;
    right.until_whole().await;
}

#[tokio::test]
async fn a_scope_layer_inside_of_the_transaction_stays_in_it() {
    let rig = Rig::new("inside_out").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(rig.routes().layer(ScopeLayer::new()).layer(layer)).await;

    server.get("/insert/1/409").await;

    assert_eq!(rig.rows().await, 0);
}
