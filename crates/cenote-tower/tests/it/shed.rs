//! Load shedding.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use cenote::{Closures, Pool};
use cenote_tower::ShedLayer;

use crate::client::{serve, until};

/// A pool of one, whose callers wait without a limit.
fn patient_pool() -> Pool<Closures<()>> {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(()));
    pool.max_size(1).acquire_timeout(None).build().unwrap()
}

/// The layer reads the status of the pool in real time. After this it reads it again.
async fn until_next_look() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_request_that_would_wait_too_long_is_refused_before_its_handler_runs() {
    let pool = patient_pool();
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let routes = Router::new().route(
        "/",
        get(move || async move {
            count.fetch_add(1, Ordering::SeqCst);
            "served"
        }),
    );
    let patience = Duration::from_millis(200);
    let server = serve(routes.layer(ShedLayer::new(&pool, patience))).await;

    assert_eq!(server.get("/").await.status, 200, "there is no queue");
    let held = pool.acquire().await.unwrap();
    let waiters: Vec<_> = (0..9)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire().await.map(drop) })
        })
        .collect();
    until("all wait", || pool.status().waiting == 9).await;
    // No resource comes back, so the estimate of the wait grows with time.
    let refused = loop {
        let answer = server.get("/").await;
        if answer.status == 503 {
            break answer;
        }
        assert_eq!(answer.status, 200);
    };
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(refused.headers["content-type"], "application/problem+json");
    let before = ran.load(Ordering::SeqCst);
    assert_eq!(server.get("/").await.status, 503);
    assert_eq!(
        ran.load(Ordering::SeqCst),
        before,
        "the handler did not run"
    );
    drop(held);
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }

    until_next_look().await;
    assert_eq!(server.get("/").await.status, 200);
}

#[tokio::test]
async fn a_request_that_can_wait_longer_is_let_in() {
    let pool = patient_pool();
    let routes = Router::new().route("/", get(|| async { "served" }));
    let layer = ShedLayer::new(&pool, Duration::ZERO).patience_of(|headers| {
        let patient = headers.get("host")?.to_str().ok()? == "localhost";
        patient.then_some(Duration::MAX)
    });
    let server = serve(routes.layer(layer)).await;
    let _held = pool.acquire().await.unwrap();
    let waiting = pool.clone();
    let waiter = tokio::spawn(async move { waiting.acquire().await.map(drop) });
    until("the task waits", || pool.status().waiting == 1).await;

    for _ in 0..5 {
        assert_eq!(server.get("/").await.status, 200);
        until_next_look().await;
    }
    waiter.abort();
}
