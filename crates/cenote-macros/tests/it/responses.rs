//! The response of a handler whose transaction cannot begin.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{Response, StatusCode};
use cenote::breaker::ConsecutiveFailures;
use cenote_sqlx::transactional;

use crate::world::postgres::Db;

#[transactional]
async fn answer(db: &Db) -> Response<String> {
    panic!("there is no connection to run this on: {db:?}");
}

#[transactional]
async fn answer_in_short(db: &Db) -> StatusCode {
    panic!("there is no connection to run this on: {db:?}");
}

/// A database that cannot be reached. The first failure trips the breaker for minutes.
fn unreachable() -> Db {
    let patient = Duration::from_secs(600);
    let breaker = ConsecutiveFailures::new(1).recover_after(patient, patient);
    let db = Db::postgres("postgres://someone@127.0.0.1:1/nothing");
    db.pool(|pool| pool.breaker(breaker)).build().unwrap()
}

fn retry_after(response: &Response<String>) -> Option<u64> {
    let seconds = response.headers().get(RETRY_AFTER)?;
    seconds.to_str().unwrap().parse().ok()
}

#[tokio::test]
async fn a_database_that_is_down_is_a_503_with_the_retry_after_of_its_breaker() {
    let db = unreachable();

    let down = answer(&db).await;
    assert_eq!(down.status(), StatusCode::SERVICE_UNAVAILABLE);
    let seconds = retry_after(&down).unwrap();
    assert!((1..=3).contains(&seconds), "{seconds} s");

    let tripped = answer(&db).await;
    assert_eq!(tripped.status(), StatusCode::SERVICE_UNAVAILABLE);
    let seconds = retry_after(&tripped).unwrap();
    assert!((60..=1350).contains(&seconds), "{seconds} s");
    assert_eq!(answer_in_short(&db).await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_closed_pool_is_a_500_with_the_error_among_the_extensions() {
    let db = unreachable();
    db.pool().close();

    let closed = answer(&db).await;

    assert_eq!(closed.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(retry_after(&closed), None);
    assert!(closed.body().is_empty());
    let error = closed.extensions().get::<Arc<sqlx::Error>>().unwrap();
    assert!(matches!(**error, sqlx::Error::PoolClosed), "{error}");
    assert_eq!(
        answer_in_short(&db).await,
        StatusCode::INTERNAL_SERVER_ERROR
    );
}
