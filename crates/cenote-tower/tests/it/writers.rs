//! SQLite's queue of writers, as readiness and load shedding see it.

use std::time::Duration;

use axum::Router;
use axum::routing::any;
use cenote_sqlx::Db;
use cenote_tower::{Readiness, ShedLayer, Stack, Text};
use http::{Method, Request};
use sqlx::Sqlite;
use tower::{Layer, ServiceExt, service_fn};

use crate::client::until;

const PATIENCE: Duration = Duration::from_millis(50);

/// A database whose only writer does not come back, with one more write in the queue.
struct Jam {
    db: Db<Sqlite>,
    _writing: cenote_sqlx::Transaction<'static, Sqlite>,
    waiting: tokio::task::JoinHandle<()>,
    _home: tempfile::TempDir,
}

impl Jam {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let url = format!(
            "sqlite://{}?mode=rwc",
            home.path().join("shop.db").display()
        );
        let db = Db::sqlite(url).acquire_timeout(None);
        let db = db.stuck_after(PATIENCE).build().unwrap();
        let create = sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db);
        create.await.unwrap();
        let writing = db.begin().await.unwrap();
        let waiting = tokio::spawn({
            let db = db.clone();
            async move {
                let write = sqlx::query("INSERT INTO t VALUES (1)");
                // The end of the test closes the pool, or drops the task.
                drop(write.execute(&db).await);
            }
        });
        until("a writer waits", || db.pool().status().waiting == 1).await;
        Self {
            db,
            _writing: writing,
            waiting,
            _home: home,
        }
    }
}

impl Drop for Jam {
    fn drop(&mut self) {
        self.waiting.abort();
    }
}

#[tokio::test]
async fn an_instance_whose_writers_are_stuck_is_not_ready() {
    let jam = Jam::new().await;
    let readiness = Readiness::new().pool(jam.db.pool());

    until("it is not ready", || !jam.db.pool().health().is_ready()).await;

    assert_eq!(readiness.oneshot(()).await.unwrap().status(), 503);
}

#[tokio::test]
async fn a_request_that_may_write_is_shed_when_writers_queue_and_a_reader_is_not() {
    let jam = Jam::new().await;
    let shed = ShedLayer::new(jam.db.pool(), PATIENCE);
    let service = shed.layer(service_fn(async |_: Request<()>| {
        Ok::<_, sqlx::Error>(http::Response::new(Text::default()))
    }));
    let status = async |method| {
        let request = Request::builder().method(method).body(()).unwrap();
        service.clone().oneshot(request).await.unwrap().status()
    };

    // The wait is estimated from the time that no writer came back.
    while status(Method::POST).await == 200 {
        tokio::task::yield_now().await;
    }

    assert_eq!(status(Method::POST).await, 503);
    assert_eq!(status(Method::GET).await, 200);
}

#[tokio::test]
async fn a_stack_that_makes_every_request_a_writer_sheds_every_request() {
    let jam = Jam::new().await;
    let routes = || Router::new().route("/", any(|| async { "served" }));
    let all = Stack::new(&jam.db).shed(PATIENCE).wrap(routes());
    let some = Stack::new(&jam.db).shed(PATIENCE);
    let some = some.transactions(|layer| layer.on_demand()).wrap(routes());
    let get = async |app: &Router| {
        let request = Request::get("/").body(axum::body::Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status()
    };

    while get(&all).await == 200 {
        assert_eq!(get(&some).await, 200);
        tokio::task::yield_now().await;
    }

    assert_eq!(get(&all).await, 503);
    assert_eq!(get(&some).await, 200);
}
