//! A pool that has nothing to lend.

use std::time::Duration;

use cenote_tower::{ProblemLayer, ScopeLayer, Text, TransactionalLayer};
use tower::{Layer, ServiceExt, service_fn};

use super::Rig;
use crate::client::{Answer, serve};

/// All that a client is told.
const BUSY: &str = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"the service is busy, try again later"}"#;

pub(super) fn assert_busy(answer: &Answer, after: &str) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.headers["retry-after"], after);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(answer.body, BUSY);
}

#[tokio::test]
async fn a_saturated_pool_is_a_503_while_others_are_served() {
    let rig = Rig::with("saturated", |builder| {
        builder.max_size(2).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let (tell, told) = std::sync::mpsc::channel();
    let problems = ProblemLayer::new()
        .retry_after(Duration::from_millis(2500))
        .on_problem(move |problem| tell.send(problem.clone()).unwrap());
    let server = serve(rig.routes().layer(ScopeLayer::new()).layer(problems)).await;
    let holders = [server.send("/hold").await, server.send("/hold").await];
    rig.until_at_gate(2).await;

    assert_busy(&server.get("/rows").await, "3");
    assert_eq!(server.get("/plain").await.body, "hello");
    rig.gate.add_permits(2);
    drop(holders);
    rig.until_whole().await;

    assert_eq!(server.get("/rows").await.body, "0");
    let problem = told.try_recv().unwrap();
    assert_eq!(problem.holders()[0].count, 2);
    let report = problem.report();
    assert!(report.contains("2 of 2 in use"), "{report}");
    assert!(report.contains("suite/mod.rs"), "who holds them: {report}");
}

#[tokio::test]
async fn a_transaction_that_finds_no_connection_is_a_503() {
    let rig = Rig::with("no_connection", |builder| {
        builder.max_size(1).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let (tell, told) = std::sync::mpsc::channel();
    let problems = ProblemLayer::new()
        .on_problem(move |problem| tell.send(problem.report().to_owned()).unwrap());
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(rig.routes().layer(layer).layer(problems)).await;
    let held = rig.db.acquire().await.unwrap();

    assert_busy(&server.get("/insert/1/200").await, "1");

    drop(held);
    assert_eq!(server.get("/insert/1/200").await.status, 200);
    assert!(told.try_recv().unwrap().contains("was not begun"));
}

#[tokio::test]
async fn a_breaker_says_when_to_come_back_and_a_full_line_is_a_503_too() {
    let rig = Rig::with("breaker", |builder| {
        builder.max_size(1).pool(|pool| pool.max_waiters(0))
    })
    .await;
    let server = serve(rig.routes().layer(ProblemLayer::new())).await;

    let held = rig.db.acquire().await.unwrap();
    assert_busy(&server.get("/rows").await, "1");
    drop(held);
    rig.db.pool().deactivate();
    assert_busy(&server.get("/rows").await, "1");
    rig.db.pool().activate();

    assert_eq!(server.get("/rows").await.status, 200);
}

#[tokio::test]
async fn a_closed_pool_is_not_a_matter_of_waiting() {
    let rig = Rig::new("closed").await;
    let (tell, told) = std::sync::mpsc::channel();
    let problems = ProblemLayer::new()
        .on_problem(move |problem| tell.send(problem.report().to_owned()).unwrap());
    let server = serve(rig.routes().layer(problems)).await;
    rig.db.pool().close();

    let answer = server.get("/rows").await;

    assert_eq!(answer.status, 500);
    assert!(!answer.headers.contains_key("retry-after"));
    assert!(!answer.body.contains("closed"), "{}", answer.body);
    let report = told.try_recv().unwrap();
    assert!(report.contains("closed"), "{report}");
}

#[tokio::test]
async fn an_error_of_sqlx_in_a_box_is_a_503_and_others_pass() {
    type BoxError = Box<dyn std::error::Error + Send + Sync>;
    let rig = Rig::with("boxed", |builder| builder.max_size(1)).await;
    let service = ProblemLayer::new().layer(service_fn(|sql: &'static str| {
        let rig = rig.clone();
        async move {
            let number = rig.number(sql).await?;
            Ok::<_, BoxError>(http::Response::new(Text::from(number.to_string())))
        }
    }));

    rig.db.pool().deactivate();
    let busy = service.clone().oneshot("SELECT count(*) FROM {}").await;
    rig.db.pool().activate();
    let wrong = service.oneshot("SELEKT").await;

    assert_eq!(busy.unwrap().status(), 503);
    assert!(wrong.unwrap_err().is::<sqlx::Error>());
}
