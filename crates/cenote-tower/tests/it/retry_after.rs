//! `Retry-After` by the line of the pool.

use std::collections::HashSet;
use std::io;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use cenote::{Closures, Pool};
use cenote_tower::{Problem, ProblemLayer};

use crate::client::{Server, serve, until};

/// A pool of one, with room for sixty waiters.
fn rooms() -> Pool<Closures<()>> {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(()));
    let pool = pool.max_size(1).max_waiters(60).acquire_timeout(None);
    pool.build().unwrap()
}

async fn enter(State(rooms): State<Pool<Closures<()>>>) -> Result<&'static str, Problem> {
    drop(rooms.acquire().await?);
    Ok("entered")
}

async fn after(server: &Server) -> u64 {
    let answer = server.get("/").await;
    assert_eq!(answer.status, 503);
    answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_long_line_makes_retry_after_long_and_its_values_are_spread() {
    for known in [true, false] {
        let rooms = rooms();
        let layer = match known {
            true => ProblemLayer::new().pool(&rooms),
            false => ProblemLayer::new(),
        };
        let routes = Router::new().route("/", get(enter));
        let server = serve(routes.with_state(rooms.clone()).layer(layer)).await;
        let _held = rooms.acquire().await.unwrap();
        let waiters: Vec<_> = (0..60)
            .map(|_| {
                let rooms = rooms.clone();
                tokio::spawn(async move { rooms.acquire().await.map(drop) })
            })
            .collect();
        until("all wait", || rooms.status().waiting == 60).await;

        assert!((1..=3).contains(&after(&server).await));
        // No room comes back, so the estimate of the wait grows with time.
        let mut seen = HashSet::new();
        for _ in 0..10_000 {
            seen.insert(after(&server).await);
            if seen.iter().any(|after| *after >= 12) {
                break;
            }
        }

        assert!(seen.iter().any(|after| *after >= 12), "{seen:?}");
        assert!(seen.len() > 3, "{seen:?}");
        waiters.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
