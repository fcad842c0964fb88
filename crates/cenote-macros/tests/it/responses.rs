//! What is answered for a transaction that could not even begin.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{Response, StatusCode};
use cenote::ConsecutiveFailures;
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

/// Nobody listens there. After the first failure the breaker is inactive for a while.
fn nowhere() -> Db {
    let patient = Duration::from_secs(600);
    let breaker = ConsecutiveFailures::new(1).recover_after(patient, patient);
    let db = Db::postgres("postgres://someone@127.0.0.1:1/nothing");
    db.pool(|pool| pool.breaker(breaker)).build().unwrap()
}

fn wait(response: &Response<String>) -> Option<u64> {
    let seconds = response.headers().get(RETRY_AFTER)?;
    seconds.to_str().unwrap().parse().ok()
}

#[tokio::test]
async fn a_database_that_is_away_is_a_500_until_the_breaker_says_for_how_long() {
    let db = nowhere();

    let away = answer(&db).await;
    assert_eq!(away.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(wait(&away), None);

    let told = answer(&db).await;
    assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
    let seconds = wait(&told).unwrap();
    assert!((60..=900).contains(&seconds), "{seconds} s");
    assert_eq!(answer_in_short(&db).await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_closed_pool_is_a_500_and_the_error_goes_with_the_response() {
    let db = nowhere();
    db.pool().close();

    let closed = answer(&db).await;

    assert_eq!(closed.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(wait(&closed), None);
    assert!(closed.body().is_empty());
    let error = closed.extensions().get::<Arc<sqlx::Error>>().unwrap();
    assert!(matches!(**error, sqlx::Error::PoolClosed), "{error}");
    assert_eq!(
        answer_in_short(&db).await,
        StatusCode::INTERNAL_SERVER_ERROR
    );
}
