//! Transactional handlers of axum, over a real socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use cenote_sqlx::transactional;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::{Done, Problem, Rig, world};

type App = State<Arc<Rig>>;

#[derive(serde::Deserialize, serde::Serialize)]
struct Order {
    id: i32,
    sold_out: bool,
}

#[transactional(rig.db)]
async fn by_error(State(rig): App, Json(order): Json<Order>) -> Result<Json<Order>, Problem> {
    rig.insert(order.id).await?;
    if order.sold_out {
        return Err(Problem::SoldOut);
    }
    Ok(Json(order))
}

#[transactional(rig.db)]
async fn by_response(State(rig): App, Json(order): Json<Order>) -> Response {
    if let Err(error) = rig.insert(order.id).await {
        return Problem::from(error).into_response();
    }
    if order.sold_out {
        return Problem::SoldOut.into_response();
    }
    Json(order).into_response()
}

#[transactional(rig.db)]
async fn by_anything(State(rig): App, Json(order): Json<Order>) -> impl IntoResponse {
    rig.insert(order.id).await.unwrap();
    if order.sold_out {
        return (StatusCode::CONFLICT, "sold out");
    }
    (StatusCode::OK, "placed")
}

#[transactional(rig.db)]
async fn by_success(
    State(rig): App,
    Json(order): Json<Order>,
) -> Result<(StatusCode, Json<Order>), Problem> {
    rig.insert(order.id).await?;
    let status = if order.sold_out {
        StatusCode::CONFLICT
    } else {
        StatusCode::CREATED
    };
    Ok((status, Json(order)))
}

/// A value whose status is known only once it is a response.
struct Page(StatusCode);

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

#[transactional(rig.db)]
async fn by_page(
    State(rig): App,
    Json(order): Json<Order>,
) -> Result<impl IntoResponse + use<>, Problem> {
    rig.insert(order.id).await?;
    Ok(Page(if order.sold_out {
        StatusCode::GONE
    } else {
        StatusCode::OK
    }))
}

#[transactional(rig.db)]
async fn broken_commit(State(rig): App, Path(status): Path<u16>) -> Response {
    rig.run("INSERT INTO {}_late VALUES (7)").await.unwrap();
    StatusCode::from_u16(status).unwrap().into_response()
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn send(address: SocketAddr, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Returns the status and the whole response.
async fn ask(address: SocketAddr, path: &str, body: &str) -> (u16, String) {
    let mut stream = send(address, path, body).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// Sends two orders, of which the second is sold out, and returns their statuses. The first row
/// must be there, and the second not.
async fn place_two(name: &str, handler: MethodRouter<Arc<Rig>>) -> (u16, u16) {
    let rig = Arc::new(Rig::new(name).await);
    let router = Router::new().route("/", handler);
    let address = serve(router.with_state(rig.clone())).await;

    let good = ask(address, "/", r#"{"id": 1, "sold_out": false}"#).await;
    let bad = ask(address, "/", r#"{"id": 2, "sold_out": true}"#).await;

    assert_eq!(rig.ids().await, [1]);
    rig.assert_clean().await;
    (good.0, bad.0)
}

#[tokio::test]
async fn a_handler_that_returns_a_result_is_rolled_back_by_its_error() {
    assert_eq!(place_two("by_error", post(by_error)).await, (200, 409));
}

#[tokio::test]
async fn a_handler_that_returns_a_response_is_rolled_back_by_its_status() {
    let statuses = place_two("by_response", post(by_response)).await;
    assert_eq!(statuses, (200, 409));
}

#[tokio::test]
async fn a_handler_that_returns_impl_into_response_is_rolled_back_by_its_status() {
    let statuses = place_two("by_anything", post(by_anything)).await;
    assert_eq!(statuses, (200, 409));
}

#[tokio::test]
async fn a_success_with_an_error_status_rolls_back() {
    assert_eq!(place_two("by_success", post(by_success)).await, (201, 409));
}

#[tokio::test]
async fn a_success_that_becomes_an_error_status_rolls_back() {
    assert_eq!(place_two("by_page", post(by_page)).await, (200, 410));
}

#[tokio::test]
async fn a_commit_that_fails_is_a_500_although_the_handler_returned_200() {
    let rig = Arc::new(Rig::new("broken_commit").await);
    let late = "CREATE TABLE {}_late (id INTEGER REFERENCES {} (id) DEFERRABLE INITIALLY DEFERRED)";
    rig.run(late).await.unwrap();
    let router = Router::new().route("/{status}", post(broken_commit));
    let address = serve(router.with_state(rig.clone())).await;

    let (status, answer) = ask(address, "/200", "").await;
    assert_eq!(status, 500);
    assert!(answer.ends_with("\r\n\r\n"), "no body: {answer}");
    assert_eq!(ask(address, "/404", "").await.0, 404, "nothing to commit");
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_exhausted_pool_is_a_503_with_retry_after() {
    let (builder, home) = world::builder();
    let builder = builder.max_size(1);
    let tight = builder.acquire_timeout(Duration::from_millis(100)).build();
    let rig = Arc::new(Rig {
        db: tight.unwrap(),
        table: "not_needed".into(),
        _home: home,
    });
    let router = Router::new().route("/", post(by_response));
    let address = serve(router.with_state(rig.clone())).await;
    // On a busy machine the first open can take longer than the timeout.
    let held = loop {
        if let Ok(held) = rig.db.begin().await {
            break held;
        }
    };

    let (status, answer) = ask(address, "/", r#"{"id": 1, "sold_out": false}"#).await;

    assert_eq!(status, 503);
    let after = ["1", "2", "3"].map(|after| format!("retry-after: {after}\r\n"));
    assert!(after.iter().any(|after| answer.contains(after)), "{answer}");
    drop(held);
}

#[tokio::test]
async fn a_client_that_hangs_up_rolls_back() {
    type Rigs = State<(Arc<Rig>, Arc<Notify>)>;
    #[transactional(rig.db)]
    async fn hang(State((rig, inserted)): Rigs) -> Result<(), Problem> {
        rig.insert(1).await?;
        inserted.notify_one();
        std::future::pending().await
    }
    let rig = Arc::new(Rig::new("hangs_up").await);
    let inserted = Arc::new(Notify::new());
    let router = Router::new().route("/", post(hang));
    let address = serve(router.with_state((rig.clone(), inserted.clone()))).await;
    let request = send(address, "/", "").await;
    inserted.notified().await;

    drop(request);

    rig.assert_clean().await;
    assert!(rig.ids().await.is_empty());
}

#[tokio::test]
async fn functions_that_a_handler_calls_are_part_of_its_transaction() -> Done {
    async fn repository(rig: &Rig, id: i32) -> Done {
        assert!(rig.db.in_transaction());
        rig.insert(id).await
    }
    #[transactional(rig.db)]
    async fn handler(State(rig): App) -> Result<StatusCode, Problem> {
        repository(&rig, 1).await?;
        repository(&rig, 2).await?;
        Ok(StatusCode::IM_A_TEAPOT)
    }
    let rig = Arc::new(Rig::new("takes_part").await);
    let router = Router::new().route("/", post(handler));
    let address = serve(router.with_state(rig.clone())).await;

    assert_eq!(ask(address, "/", "").await.0, 418);

    assert!(rig.ids().await.is_empty());
    Ok(())
}
