//! Shedding load at the door.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use cenote::Pool;
use cenote_tower::ShedLayer;

use crate::client::{serve, until};

#[tokio::test]
async fn who_would_wait_in_vain_is_refused_before_the_handler_runs() {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(()));
    let pool = pool.max_size(1).acquire_timeout(None).build().unwrap();
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

    assert_eq!(server.get("/").await.status, 200, "nobody waits");
    let held = pool.acquire().await.unwrap();
    let waiters: Vec<_> = (0..9)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire().await.map(drop) })
        })
        .collect();
    until("all are in line", || pool.status().waiting == 9).await;
    // Nothing comes back: the longer that lasts, the surer it is that a newcomer waits too long.
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

    tokio::time::sleep(Duration::from_millis(20)).await; // the layer looks by real time: the next look is due
    assert_eq!(server.get("/").await.status, 200);
}

#[tokio::test]
async fn a_request_that_has_more_time_is_let_in() {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(()));
    let pool = pool.max_size(1).acquire_timeout(None).build().unwrap();
    let routes = Router::new().route("/", get(|| async { "served" }));
    let layer = ShedLayer::new(&pool, Duration::ZERO).patience_of(|headers| {
        let patient = headers.get("host")?.to_str().ok()? == "localhost";
        patient.then_some(Duration::MAX)
    });
    let server = serve(routes.layer(layer)).await;
    let _held = pool.acquire().await.unwrap();
    let waiting = pool.clone();
    let waiter = tokio::spawn(async move { waiting.acquire().await.map(drop) });
    until("it is in line", || pool.status().waiting == 1).await;

    for _ in 0..5 {
        assert_eq!(server.get("/").await.status, 200);
        tokio::time::sleep(Duration::from_millis(12)).await; // the layer looks by real time: the next look is due
    }
    waiter.abort();
}
