//! Bodies that are read after the handler has ended.

use std::convert::Infallible;

use actix_web::web::{Bytes, Data, get};
use actix_web::{App, HttpResponse};
use cenote_actix::{Problem, RequestScope, Transactional};
use futures_util::{Stream, StreamExt, stream};
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use crate::rig::Rig;
use crate::server::{Server, serve, serve_with};

fn streaming(rig: &Rig) -> Server {
    streaming_to(rig, true)
}

/// If `half_closed` is false, a client that has closed its half is taken as gone.
fn streaming_to(rig: &Rig, half_closed: bool) -> Server {
    let rig = rig.clone();
    serve_with(half_closed, move || {
        App::new()
            .app_data(Data::new(rig.clone()))
            .route("/many", get().to(many))
            .route("/paged", get().to(paged))
            .wrap(RequestScope::new())
    })
}

/// Responds with many rows, in a stream that holds its connection.
async fn many(rig: Data<Rig>) -> HttpResponse {
    HttpResponse::Ok().streaming(lines(rig))
}

/// Reads the rows in the body itself, which the middleware polls in the scope.
fn lines(rig: Data<Rig>) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let (send, receive) = mpsc::channel(1);
    let reading = async move {
        let many = "SELECT n::bigint FROM generate_series(1, 5000) AS n";
        let mut rows = sqlx::query_scalar(many).fetch(rig.db());
        while let Some(row) = rows.next().await {
            let number: i64 = row.unwrap();
            // So that all lines do not fit into the buffers of the system.
            let line = format!("{} {number}\n", "x".repeat(4000));
            send.send(line).await.unwrap();
        }
    };
    let nothing = stream::once(reading).filter_map(async |()| None);
    let received = stream::unfold(receive, async |mut receive| {
        let line: String = receive.recv().await?;
        Some((Ok(line.into()), receive))
    });
    stream::select(received, nothing)
}

/// Changes the session. Each part of the body reads the session after the gate was opened once.
async fn paged(rig: Data<Rig>) -> Result<HttpResponse, Problem> {
    rig.run("SET cenote.changed = 'yes'").await?;
    let pages = stream::unfold((rig, 0), async |(rig, page)| {
        if page == 3 {
            return None;
        }
        rig.wait_at_gate().await;
        let seen = "SELECT (current_setting('cenote.changed', true) = 'yes')::int::bigint";
        let seen = rig.number(seen).await.unwrap().to_string();
        Some((Ok::<_, Infallible>(Bytes::from(seen)), (rig, page + 1)))
    });
    Ok(HttpResponse::Ok().streaming(pages))
}

#[tokio::test]
async fn a_streaming_body_keeps_its_connection_until_its_end() {
    let rig = Rig::with("to_the_end", |builder| builder.max_size(1)).await;
    let server = streaming(&rig);
    let mut body = server.open("/many").await.unwrap().into_body();

    body.frame().await.unwrap().unwrap();
    assert_eq!(rig.db().pool().status().in_use, 1);
    let rest = body.collect().await.unwrap().to_bytes();

    assert!(rest.ends_with(b"x 5000\n"));
    rig.until_whole().await;
}

#[tokio::test]
async fn a_streaming_body_is_read_in_the_scope_of_its_request() {
    let rig = Rig::new("paged").await;
    let server = streaming(&rig);

    rig.open_gate(3);
    let answer = server.get("/paged").await;

    assert_eq!(answer.body, "111");
    rig.until_whole().await;
}

#[tokio::test]
async fn a_client_that_disconnects_in_the_body_gives_its_connection_back() {
    let rig = Rig::new("body_disconnects").await;
    let server = streaming_to(&rig, false);
    let mut many = server.open("/many").await.unwrap();
    many.frame().await.unwrap().unwrap();
    let mut paged = server.open("/paged").await.unwrap();
    rig.open_gate(1);
    paged.frame().await.unwrap().unwrap();
    rig.until_at_gate(2).await;
    assert_eq!(rig.db().pool().status().in_use, 2);

    drop((many, paged));

    rig.until_whole().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_written_gives_its_connection_back() {
    let rig = Rig::new("body_unread").await;
    let server = streaming(&rig);
    let mut many = server.open("/many").await.unwrap();
    many.frame().await.unwrap().unwrap();

    drop(many);

    rig.until_whole().await;
}

#[tokio::test]
async fn a_streaming_body_is_read_after_the_commit() {
    let rig = Rig::new("after_commit").await;
    let at_work = rig.clone();
    let server = serve(move || {
        App::new()
            .app_data(Data::new(at_work.clone()))
            .route("/", get().to(insert_and_stream))
            .wrap(Transactional::new(at_work.db().clone()))
            .wrap(RequestScope::new())
    });
    let response = server.open("/").await.unwrap();

    assert_eq!(rig.rows().await, 1, "it is committed before the body");

    rig.open_gate(1);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "false");
    rig.until_whole().await;
}

/// Its body tells whether it is read in a transaction.
async fn insert_and_stream(rig: Data<Rig>) -> Result<HttpResponse, Problem> {
    rig.insert(1).await?;
    let body = stream::once(async move {
        rig.wait_at_gate().await;
        Ok::<_, Infallible>(Bytes::from(rig.db().in_transaction().to_string()))
    });
    Ok(HttpResponse::Ok().streaming(body))
}

#[tokio::test]
async fn a_commit_does_not_wait_for_ever_for_rows_that_were_moved_into_the_body() {
    let rig = Rig::impatient("moved_rows", 2).await;
    let at_work = rig.clone();
    let server = serve(move || {
        App::new()
            .app_data(Data::new(at_work.clone()))
            .route("/", get().to(move_rows))
            .wrap(Transactional::new(at_work.db().clone()))
    });

    let answer = server.get("/").await;

    assert_eq!(answer.status, 500);
    rig.until_whole().await;
}

/// Moves a row stream of the transaction into the body.
async fn move_rows(rig: Data<Rig>) -> Result<HttpResponse, Problem> {
    let (send, receive) = tokio::sync::oneshot::channel();
    let mut rows = Box::pin(async_rows(rig, send));
    let first = rows.next().await;
    receive.await.unwrap();
    Ok(HttpResponse::Ok().streaming(stream::iter(first).chain(rows)))
}

fn async_rows(
    rig: Data<Rig>,
    send: tokio::sync::oneshot::Sender<()>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::once(async move {
        let lease = rig.db().acquire().await.unwrap();
        send.send(()).unwrap();
        lease
    })
    .flat_map(|lease| {
        // The stream holds the lease of the transaction until it is dropped.
        stream::iter(["one", "two"].map(Bytes::from)).map(move |row| {
            let _held = &lease;
            Ok(row)
        })
    })
}
