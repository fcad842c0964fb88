//! Bodies that are read after the handler has ended.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use cenote_tower::{Problem, ScopeLayer, TransactionalLayer};
use futures_util::{Stream, StreamExt, stream};
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::Rig;
use super::world;
use crate::client::{Server, serve, until};
use crate::reports::reporting;

async fn streaming(rig: &Rig) -> Server {
    let routes = Router::new()
        .route("/many", get(many))
        .route("/paged", get(paged))
        .with_state(rig.clone());
    serve(routes.layer(ScopeLayer::new())).await
}

/// Responds with many rows, in a stream that holds its connection.
async fn many(State(rig): State<Rig>) -> Body {
    Body::from_stream(lines(rig))
}

/// Reads the rows in the body itself, which the layer polls in the scope.
fn lines(rig: Rig) -> impl Stream<Item = Result<String, Infallible>> {
    let (send, receive) = mpsc::channel(1);
    let reading = async move {
        let mut rows = sqlx::query_scalar(world::MANY).fetch(&rig.db);
        while let Some(row) = rows.next().await {
            let number: i64 = row.unwrap();
            send.send(format!("{number}\n")).await.unwrap();
        }
    };
    let nothing = stream::once(reading).filter_map(async |()| None);
    let received = stream::unfold(receive, async |mut receive| {
        let line = receive.recv().await?;
        Some((Ok(line), receive))
    });
    stream::select(received, nothing)
}

/// Changes the session. Each part of the body reads the session after the gate was opened once.
async fn paged(State(rig): State<Rig>) -> Result<Response, Problem> {
    rig.run(world::CHANGE).await?;
    let pages = stream::unfold((rig, 0), async |(rig, page)| {
        if page == 3 {
            return None;
        }
        rig.wait_at_gate().await;
        let seen = rig.number(world::CHANGED).await.unwrap();
        Some((Ok::<_, Infallible>(seen.to_string()), (rig, page + 1)))
    });
    Ok(Response::new(Body::from_stream(pages)))
}

#[tokio::test]
async fn a_streaming_body_keeps_its_connection_until_its_end() {
    let rig = Rig::with("to_the_end", |builder| builder.max_size(1)).await;
    let server = streaming(&rig).await;
    let mut body = server.open("/many").await.unwrap().into_body();

    body.frame().await.unwrap().unwrap();
    assert_eq!(rig.db.pool().status().in_use, 1);
    let rest = body.collect().await.unwrap().to_bytes();

    assert!(rest.ends_with(b"\n100000\n"));
    rig.until_whole().await;
}

#[tokio::test]
async fn a_streaming_body_that_is_dropped_gives_its_connection_back() {
    let rig = Rig::with("dropped_body", |builder| builder.max_size(1)).await;
    let server = streaming(&rig).await;

    for _ in 0..5 {
        let mut body = server.open("/many").await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        rig.until_whole().await;
    }
}

#[tokio::test]
async fn a_streaming_body_is_read_in_the_scope_of_its_request() {
    let rig = Rig::with("goes_on", |builder| builder.max_size(2)).await;
    let server = streaming(&rig).await;
    let body = server.open("/paged").await.unwrap().into_body();

    rig.until_at_gate(1).await;
    assert_eq!(
        rig.db.pool().status().in_use,
        1,
        "the connection is pinned in the scope"
    );
    rig.gate.add_permits(3);
    let text = body.collect().await.unwrap().to_bytes();

    assert_eq!(
        text, "111",
        "every part was read in the session that the handler changed"
    );
    rig.until_whole().await;
}

#[tokio::test]
async fn a_client_that_disconnects_during_the_body_ends_the_scope() {
    let rig = Rig::with("hung_up", |builder| builder.max_size(2)).await;
    let server = streaming(&rig).await;
    let body = server.open("/paged").await.unwrap().into_body();
    rig.until_at_gate(1).await;

    drop(body);

    let pool = rig.db.pool();
    until("the scope has ended", || pool.status().in_use == 0).await;
    rig.until_whole().await;
}

#[tokio::test]
async fn a_body_is_read_after_the_commit() {
    let rig = Rig::with("after_commit", |builder| builder.max_size(2)).await;
    let handler = |State(rig): State<Rig>| async move {
        rig.insert(1).await?;
        let later = stream::once(async move {
            let inside = rig.db.in_transaction();
            Ok::<_, Infallible>(format!("{inside} {}", rig.rows().await))
        });
        Ok::<_, Problem>(Body::from_stream(later))
    };
    let routes = Router::new()
        .route("/", get(handler))
        .with_state(rig.clone());
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(routes.layer(layer).layer(ScopeLayer::new())).await;

    let answer = server.get("/").await;

    assert_eq!(answer.body, "false 1");
    rig.until_whole().await;
}

#[tokio::test]
async fn rows_of_the_transaction_in_the_body_make_the_request_fail() {
    let rig = Rig::with("moved_rows", |builder| {
        builder.max_size(2).acquire_timeout(Duration::from_secs(2))
    })
    .await;
    let handler = |State(rig): State<Rig>| async move {
        let mut rows = Box::pin(lines(rig));
        let first = rows.next().await.unwrap();
        Body::from_stream(stream::iter([first]).chain(rows))
    };
    let routes = Router::new()
        .route("/", get(handler))
        .with_state(rig.clone());
    let (problems, told) = reporting();
    let layer = TransactionalLayer::new(rig.db.clone());
    let server = serve(routes.layer(layer).layer(problems)).await;

    let answer = server.get("/").await;

    assert_eq!(answer.status, 500);
    let problem = told.try_recv().unwrap();
    let report = problem.report();
    assert!(report.contains("end that use first"), "{report}");
    rig.until_whole().await;
}
