//! Health checks over a socket.

use std::io;
use std::time::Duration;

use cenote::Pool;
use cenote_sqlx::Db;
use cenote_tower::{Readiness, health_routes};

use crate::client::{serve, until};

#[tokio::test]
async fn a_busy_pool_is_ready_a_stuck_or_closed_one_is_not_and_the_instance_stays_alive() {
    let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(()))
        .name("rooms")
        .max_size(1)
        .acquire_timeout(None)
        .stuck_after(Duration::from_millis(50))
        .build()
        .unwrap();
    let server = serve(health_routes(Readiness::new().pool(&pool))).await;
    let ready = async || {
        assert_eq!(server.get("/livez").await.status, 200);
        let answer = server.get("/readyz").await;
        assert_eq!(answer.headers["content-type"], "application/json");
        (answer.status.as_u16(), answer.body)
    };

    assert_eq!(
        ready().await,
        (
            200,
            r#"{"ready":true,"pools":{"rooms":"unproven: nothing was opened yet"}}"#.into()
        )
    );
    let held = pool.acquire().await.unwrap();
    assert_eq!(
        ready().await,
        (200, r#"{"ready":true,"pools":{"rooms":"busy"}}"#.into())
    );
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire().await.map(drop) }
    });
    until("the pool is stuck", || !pool.health().is_ready()).await;
    let (status, body) = ready().await;
    assert!(status == 503 && body.contains("stuck"), "{body}");
    drop(held);
    waiter.await.unwrap().unwrap();
    assert_eq!(ready().await.0, 200);
    pool.breaker().trip();
    let (status, body) = ready().await;
    assert!(status == 503 && body.contains("down"), "{body}");
    pool.close();
    assert_eq!(ready().await.0, 503);
}

#[tokio::test]
async fn a_pool_that_opened_nothing_is_ready_unless_it_must_be_warm() {
    let pool = |name| {
        let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(())).name(name);
        pool.max_size(1).build().unwrap()
    };
    let (used, unused) = (pool("used"), pool("unused"));
    drop(used.acquire().await.unwrap());
    let readiness = Readiness::new().pool(&used).pool(&unused);
    let lenient = serve(health_routes(readiness.clone())).await;
    let strict = serve(health_routes(readiness.require_warm())).await;

    let (lenient, before) = (lenient.get("/readyz").await, strict.get("/readyz").await);
    unused.warm().await.unwrap();
    let after = strict.get("/readyz").await;

    assert_eq!(lenient.status, 200);
    assert_eq!(before.status, 503);
    let expected =
        r#"{"ready":false,"pools":{"used":"healthy","unused":"unproven: nothing was opened yet"}}"#;
    assert_eq!(before.body, expected);
    assert_eq!(after.status, 200, "{}", after.body);
}

#[tokio::test]
async fn a_drained_instance_is_not_ready_and_still_serves() {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(())).name("rooms");
    let pool = pool.build().unwrap();
    drop(pool.acquire().await.unwrap());
    let readiness = Readiness::new().pool(&pool);
    let routes = axum::Router::new().route("/", axum::routing::get(|| async { "served" }));
    let server = serve(routes.merge(health_routes(readiness.clone()))).await;
    assert_eq!(server.get("/readyz").await.status, 200);

    readiness.drain();

    let answer = server.get("/readyz").await;
    let expected = r#"{"ready":false,"draining":true,"pools":{"rooms":"healthy"}}"#;
    assert_eq!((answer.status.as_u16(), &*answer.body), (503, expected));
    assert_eq!(server.get("/livez").await.status, 200);
    assert_eq!(server.get("/").await.body, "served");
    assert!(pool.acquire().await.is_ok());
}

#[tokio::test]
async fn a_database_whose_opens_fail_is_not_ready() {
    let db = Db::postgres("postgres://someone@127.0.0.1:1/nothing").build();
    let db = db.unwrap();
    let server = serve(health_routes(Readiness::new().pool(db.pool()))).await;

    assert!(db.acquire().await.is_err());

    let answer = server.get("/readyz").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.body.contains("down"), "{}", answer.body);
}

#[tokio::test]
async fn a_database_whose_opens_hang_is_not_ready() {
    // The kernel accepts the connection, and no server speaks on it.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let db = Db::postgres(format!("postgres://someone@127.0.0.1:{port}/nothing"))
        .acquire_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let server = serve(health_routes(Readiness::new().pool(db.pool()))).await;

    assert!(db.acquire().await.is_err());

    let answer = server.get("/readyz").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
}
