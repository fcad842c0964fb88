//! Handlers of the tests. They know the database, and nothing of the middleware.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, ServiceConfig, get};
use actix_web::{App, HttpResponse, Responder};
use cenote_actix::{Problem, RequestScope, Transactional};

use crate::rig::Rig;
use crate::server::{Server, serve_with};

pub(crate) fn routes(rig: &Rig) -> impl FnOnce(&mut ServiceConfig) + use<> {
    let data = Data::new(rig.clone());
    |config| {
        config
            .app_data(data)
            .route("/plain", get().to(async || "hello"))
            .route("/rows", get().to(rows))
            .route("/hold", get().to(hold))
            .route("/insert/{id}/{status}", get().to(insert))
            .route("/insert_and_wait/{id}", get().to(insert_and_wait))
            .route("/insert_and_panic/{id}", get().to(insert_and_panic))
            .route("/insert_twice/{id}", get().to(insert_twice))
            .route("/orphan/{id}", get().to(orphan))
            .route("/backends", get().to(backends))
            .route("/cut", get().to(cut));
    }
}

/// Serves the routes in a transaction, in the scope of their request.
pub(crate) fn transactional(rig: &Rig) -> Server {
    transactional_to(rig, true)
}

/// As [`transactional`]. If `half_closed` is false, a client that has closed its half is taken as
/// gone.
pub(crate) fn transactional_to(rig: &Rig, half_closed: bool) -> Server {
    let rig = rig.clone();
    serve_with(half_closed, move || {
        App::new()
            .configure(routes(&rig))
            .wrap(Transactional::new(rig.db().clone()))
            .wrap(RequestScope::new())
    })
}

async fn rows(rig: Data<Rig>) -> Result<String, Problem> {
    Ok(rig.number("SELECT count(*) FROM {}").await?.to_string())
}

/// Holds a connection until the gate is opened.
async fn hold(rig: Data<Rig>) -> Result<&'static str, Problem> {
    let _held = rig.db().acquire().await?;
    rig.wait_at_gate().await;
    Ok("held")
}

async fn insert(rig: Data<Rig>, path: Path<(i32, u16)>) -> Result<impl Responder, Problem> {
    let (id, status) = *path;
    rig.insert(id).await?;
    Ok(HttpResponse::build(StatusCode::from_u16(status).unwrap()).body("inserted"))
}

async fn insert_and_wait(rig: Data<Rig>, id: Path<i32>) -> Result<&'static str, Problem> {
    rig.insert(*id).await?;
    rig.wait_at_gate().await;
    Ok("inserted")
}

async fn insert_and_panic(rig: Data<Rig>, id: Path<i32>) -> &'static str {
    rig.insert(*id).await.unwrap();
    panic!("a handler with a bug");
}

/// Fails: the second insert violates the key.
async fn insert_twice(rig: Data<Rig>, id: Path<i32>) -> Result<&'static str, Problem> {
    rig.insert(*id).await?;
    rig.insert(*id).await?;
    Ok("never")
}

async fn orphan(rig: Data<Rig>, id: Path<i32>) -> Result<&'static str, Problem> {
    rig.insert_orphan(*id).await?;
    Ok("this must not be sent")
}

/// Returns the connection of the first statement, and that of a statement behind the gate.
async fn backends(rig: Data<Rig>) -> Result<String, Problem> {
    let first = rig.backend().await?;
    rig.wait_at_gate().await;
    let second = rig.backend().await?;
    Ok(format!("{first} {second}"))
}

/// Ends the connection of its own transaction, and ignores the error.
async fn cut(rig: Data<Rig>) -> &'static str {
    let cut = "SELECT pg_terminate_backend(pg_backend_pid())::int::bigint";
    assert!(rig.number(cut).await.is_err());
    "all is well"
}
