//! Traces by the page: what they contain, when they end, and which requests are refused.

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use cenote_dashboard::Dashboard;
use cenote_telemetry::trace::{Recorded, Stop};
use futures_util::StreamExt;
use tower::ServiceExt;

use super::rig::{AnyPool, get, pool, send};

/// Begins a recording. The first block has come when this returns, so the pool is observed.
async fn record(app: &Router, pool: &AnyPool, seconds: u64) -> (BodyDataStream, Vec<u8>) {
    let path = format!("/api/pools/{}/trace?seconds={seconds}", pool.number());
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "application/octet-stream"
    );
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    (body, first.to_vec())
}

async fn rest(mut body: BodyDataStream, mut bytes: Vec<u8>) -> Recorded {
    while let Some(block) = body.next().await {
        bytes.extend(block.unwrap());
    }
    Recorded::read(&*bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_has_every_acquire_until_the_end_of_the_page() {
    let pool = pool("recorded", 3);
    let page = Dashboard::new().start();
    let app: Router = page.routes();
    let (body, bytes) = record(&app, &pool, 3600).await;
    for _ in 0..5 {
        drop(pool.acquire().await.unwrap());
    }

    page.end();
    let trace = rest(body, bytes).await;

    assert_eq!(trace.config.name.as_deref(), Some("recorded"));
    assert_eq!((trace.config.max_size, trace.visits.len()), (3, 5));
    assert_eq!(trace.end.unwrap().stop, Stop::Asked);
    assert!(trace.sites[1].contains("trace.rs:"), "{:?}", trace.sites);
    let path = format!("/api/pools/{}/trace?seconds=1", pool.number());
    assert_eq!(get(&app, &path).await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_ends_when_its_seconds_are_over() {
    let pool = pool("short", 1);
    let app: Router = Dashboard::new().routes();

    let (body, bytes) = record(&app, &pool, 1).await;

    assert_eq!(rest(body, bytes).await.end.unwrap().stop, Stop::Time);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_ends_its_recording_and_leaves_its_place() {
    let pool = pool("left", 1);
    let app: Router = Dashboard::new().max_clients(1).routes();
    let path = format!("/api/pools/{}/trace?seconds=3600", pool.number());

    let (body, _) = record(&app, &pool, 3600).await;
    let full = get(&app, &path).await;
    drop(body);

    assert_eq!(
        (
            full.status.as_u16(),
            full.headers["retry-after"].to_str().unwrap()
        ),
        (503, "5")
    );
    let (body, _) = record(&app, &pool, 3600).await;
    drop(body);
}

#[tokio::test]
async fn requests_without_a_time_or_a_pool_are_refused() {
    let pool = pool("asked", 1);
    let app: Router = Dashboard::new().host("ops.example.com").routes();
    let number = pool.number();
    for (path, status) in [
        (format!("/api/pools/{number}/trace"), 400),
        (format!("/api/pools/{number}/trace?seconds=0"), 400),
        (format!("/api/pools/{number}/trace?seconds=86401"), 400),
        (format!("/api/pools/{number}/trace?seconds=x"), 400),
        ("/api/pools/0/trace?seconds=1".to_owned(), 404),
        ("/api/pools/x/trace?seconds=1".to_owned(), 404),
    ] {
        let request = Request::get(&path).header("host", "ops.example.com");
        let read = send(&app, request, "").await;
        assert_eq!(read.status.as_u16(), status, "{path}");
        assert!(read.json()["error"].is_string(), "{path}");
    }

    let path = format!("/api/pools/{number}/trace?seconds=1");
    let request = Request::get(path).header("host", "evil.example.com");
    assert_eq!(send(&app, request, "").await.status.as_u16(), 421);
}
