//! Responses of a pool that has nothing to lend.

use std::time::Duration;

use cenote_tower::{ProblemLayer, ScopeLayer, Text, TransactionalLayer};
use http::Request;
use tower::{Layer, ServiceExt, service_fn};

use super::Rig;
use crate::client::{Answer, serve};
use crate::reports::reporting;

/// The whole body of such a response.
const BUSY: &str = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"the service is busy, try again later"}"#;

/// `least` is the `Retry-After` without its random part.
pub(super) fn assert_busy(answer: &Answer, least: u64) {
    assert_eq!(answer.status, 503, "{answer:?}");
    let after: u64 = answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let most = least + (least / 2).max(2);
    assert!((least..=most).contains(&after), "{after}");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(answer.body, BUSY);
}

#[tokio::test]
async fn a_saturated_pool_is_a_503_while_others_are_served() {
    let rig = Rig::with("saturated", |builder| {
        builder.max_size(2).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let (problems, told) = reporting();
    let problems = problems.retry_after(Duration::from_millis(2500));
    let server = serve(rig.routes().layer(ScopeLayer::new()).layer(problems)).await;
    let holders = [server.send("/hold").await, server.send("/hold").await];
    rig.until_at_gate(2).await;

    assert_busy(&server.get("/rows").await, 3);
    assert_eq!(server.get("/plain").await.body, "hello");
    rig.gate.add_permits(2);
    drop(holders);
    rig.until_whole().await;

    assert_eq!(server.get("/rows").await.body, "0");
    let problem = told.try_recv().unwrap();
    assert_eq!(problem.holders()[0].count, 2);
    let report = problem.report();
    assert!(report.contains("2 of 2 in use"), "{report}");
    assert!(
        report.contains("suite/mod.rs"),
        "the holders are missing: {report}"
    );
}

#[tokio::test]
async fn a_transaction_that_finds_no_connection_is_a_503() {
    let rig = Rig::with("no_connection", |builder| {
        builder.max_size(1).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let (problems, told) = reporting();
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(rig.routes().layer(layer).layer(problems)).await;
    let held = rig.db.acquire().await.unwrap();

    assert_busy(&server.get("/insert/1/200").await, 1);

    drop(held);
    assert_eq!(server.get("/insert/1/200").await.status, 200);
    let problem = told.try_recv().unwrap();
    let report = problem.report();
    assert!(
        report.starts_with("GET /insert/{id}/{status}: "),
        "{report}"
    );
    assert!(report.contains("1 of 1 in use"), "{report}");
}

#[tokio::test]
async fn a_full_queue_and_a_tripped_breaker_are_a_503() {
    let rig = Rig::with("breaker", |builder| {
        builder.max_size(1).pool(|pool| pool.max_waiters(0))
    })
    .await;
    let server = serve(rig.routes().layer(ProblemLayer::new())).await;

    let held = rig.db.acquire().await.unwrap();
    assert_busy(&server.get("/rows").await, 1);
    drop(held);
    rig.db.pool().breaker().trip();
    assert_busy(&server.get("/rows").await, 1);
    rig.db.pool().breaker().reset();

    assert_eq!(server.get("/rows").await.status, 200);
}

#[tokio::test]
async fn a_closed_pool_is_a_500_without_retry_after() {
    let rig = Rig::new("closed").await;
    let (problems, told) = reporting();
    let server = serve(rig.routes().layer(problems)).await;
    rig.db.pool().close();

    let answer = server.get("/rows").await;

    assert_eq!(answer.status, 500);
    assert!(!answer.headers.contains_key("retry-after"));
    assert!(!answer.body.contains("closed"), "{}", answer.body);
    let problem = told.try_recv().unwrap();
    assert!(problem.report().contains("closed"), "{problem:?}");
}

#[tokio::test]
async fn a_boxed_pool_error_of_sqlx_is_a_503_and_other_errors_pass() {
    type BoxError = Box<dyn std::error::Error + Send + Sync>;
    let rig = Rig::with("boxed", |builder| builder.max_size(1)).await;
    let service = ProblemLayer::new().layer(service_fn(|sql: Request<&'static str>| {
        let rig = rig.clone();
        async move {
            let number = rig.number(sql.body()).await?;
            Ok::<_, BoxError>(http::Response::new(Text::from(number.to_string())))
        }
    }));

    rig.db.pool().breaker().trip();
    let count = Request::new("SELECT count(*) FROM {}");
    let busy = service.clone().oneshot(count).await;
    rig.db.pool().breaker().reset();
    let wrong = service.oneshot(Request::new("SELEKT")).await;

    assert_eq!(busy.unwrap().status(), 503);
    assert!(wrong.unwrap_err().is::<sqlx::Error>());
}
