//! `#[transactional]` of cenote-sqlx and the layers of this crate respond alike.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use cenote::AcquireError;
use cenote::breaker::ConsecutiveFailures;
use cenote::scope::BindError;
use cenote_sqlx::{Db, Reply, pool_error, transactional};
use cenote_tower::{Problem, ProblemLayer, rolls_back, status_rolls_back};
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use sqlx::{Postgres, Sqlite};
use tower::{Layer, ServiceExt, service_fn};

use crate::world::sqlite as world;

#[transactional]
async fn answer(db: &Db<Sqlite>) -> Response<String> {
    panic!("there is no connection to run this on: {db:?}");
}

#[transactional]
async fn answer_on_postgres(db: &Db<Postgres>) -> Response<String> {
    panic!("there is no connection to run this on: {db:?}");
}

/// Asserts that a function and a `Problem` respond alike to the same error.
fn assert_alike(answer: &Response<String>, status: u16, retry: bool) {
    let error = answer.extensions().get::<Arc<sqlx::Error>>().unwrap();
    let found = Problem::of_sqlx(&**error);
    let problem = found.unwrap_or_else(|| Problem::internal(&**error));
    let other = problem.to_response();

    assert_eq!(answer.status(), status, "{error}");
    assert_eq!(answer.status(), other.status(), "{error}");
    // Both have a random part.
    let after = |headers: &http::HeaderMap| -> Option<u64> {
        headers.get(RETRY_AFTER)?.to_str().unwrap().parse().ok()
    };
    match (after(answer.headers()), after(other.headers())) {
        (None, None) => assert!(!retry, "{error}"),
        (Some(one), Some(two)) => assert!(retry && one <= two * 3 && two <= one * 3, "{error}"),
        (one, two) => panic!("{one:?} is not like {two:?}: {error}"),
    }
}

#[tokio::test]
async fn a_timeout_a_tripped_breaker_and_a_closed_pool_have_the_same_response() {
    let (builder, _home) = world::builder("alike");
    let db = builder
        .max_size(1)
        .acquire_timeout(Duration::from_millis(100));
    let db = db.build().unwrap();
    // On a busy machine the first open can take longer than the timeout.
    let held = loop {
        if let Ok(held) = db.acquire().await {
            break held;
        }
    };

    assert_alike(&answer(&db).await, 503, true);
    drop(held);
    db.pool().breaker().trip();
    assert_alike(&answer(&db).await, 503, true);
    db.pool().close();
    assert_alike(&answer(&db).await, 500, false);
}

#[tokio::test]
async fn a_full_queue_has_the_same_response() {
    let (builder, _home) = world::builder("alike_full");
    let db = builder.max_size(1).pool(|pool| pool.max_waiters(0));
    let db = db.build().unwrap();
    let _held = db.acquire().await.unwrap();

    let full = answer(&db).await;

    assert_alike(&full, 503, true);
    let error = full.extensions().get::<Arc<sqlx::Error>>().unwrap();
    let rejected = matches!(
        pool_error(error),
        Some(BindError::Acquire(AcquireError::Rejected { .. }))
    );
    assert!(rejected, "{error}");
}

/// A database that cannot be reached. The first failure trips the breaker for minutes.
fn unreachable() -> Db<Postgres> {
    let patient = Duration::from_secs(600);
    let breaker = ConsecutiveFailures::new(1).recover_after(patient, patient);
    let db = Db::postgres("postgres://someone@127.0.0.1:1/nothing");
    db.pool(|pool| pool.breaker(breaker)).build().unwrap()
}

#[tokio::test]
async fn a_database_that_is_down_has_the_same_response() {
    let db = unreachable();

    for _ in ["opening fails", "the breaker has tripped"] {
        assert_alike(&answer_on_postgres(&db).await, 503, true);
    }
}

#[tokio::test]
async fn a_database_that_is_unknown_has_the_same_response_without_retry_after() {
    let url = crate::world::postgres::server();
    let unknown = url.rsplit_once('/').unwrap().0;
    for breaks in [false, true] {
        let db = Db::postgres(format!("{unknown}/cenote_there_is_no_such_database"));
        let db = match breaks {
            true => db.pool(|pool| pool.breaker(ConsecutiveFailures::new(1))),
            false => db,
        };
        let db = db.build().unwrap();

        assert_alike(&answer_on_postgres(&db).await, 503, false);
        assert_alike(&answer_on_postgres(&db).await, 503, false);
    }
}

#[tokio::test]
async fn the_retry_after_of_a_breaker_wins_over_that_of_the_layer() {
    let db = unreachable();
    let layer = ProblemLayer::new().retry_after(Duration::from_secs(7));
    let by_function = layer.layer(service_fn(|_: Request<()>| async {
        Ok::<_, sqlx::Error>(answer_on_postgres(&db).await)
    }));
    let by_error = layer.layer(service_fn(|_: Request<()>| async {
        drop(db.acquire().await?);
        Ok::<_, sqlx::Error>(Response::new(String::new()))
    }));
    assert!(db.acquire().await.is_err(), "the failure trips the breaker");

    let function = by_function.oneshot(Request::new(())).await.unwrap();
    let error = by_error.oneshot(Request::new(())).await.unwrap();

    for answer in [function, error] {
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let after = answer.headers()[RETRY_AFTER].to_str().unwrap();
        let after: u64 = after.parse().unwrap();
        assert!((60..=1350).contains(&after), "{after}");
    }
}

#[test]
fn both_crates_roll_back_for_the_same_statuses() {
    for code in 100..=999 {
        let status = StatusCode::from_u16(code).unwrap();
        let mut response = Response::new(());
        *response.status_mut() = status;

        assert_eq!(status_rolls_back(status), (400..600).contains(&code));
        assert_eq!(rolls_back(&response), status_rolls_back(status));
        assert_eq!(status.is_error(), status_rolls_back(status));
        assert_eq!(response.is_error(), status_rolls_back(status));
    }
}

#[tokio::test]
async fn a_response_with_its_own_body_or_status_passes_unchanged() {
    for (status, text) in [(500, "we are sorry"), (404, "")] {
        let service = ProblemLayer::new().layer(service_fn(move |_: Request<()>| async move {
            let answer = Response::builder().status(status).header("x-own", "yes");
            let answer = answer.extension(Arc::new(sqlx::Error::RowNotFound));
            Ok::<_, std::io::Error>(answer.body(Body::from(text)).unwrap())
        }));

        let (parts, body) = service
            .oneshot(Request::new(()))
            .await
            .unwrap()
            .into_parts();

        assert_eq!(parts.status, status);
        assert_eq!(parts.headers.len(), 1, "{:?}", parts.headers);
        assert_eq!(body.collect().await.unwrap().to_bytes(), text);
    }
}
