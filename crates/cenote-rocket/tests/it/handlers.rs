//! Handlers of the tests.

use rocket::http::Status;
use rocket::request::{FromRequest, Outcome, Request};
use rocket::{Route, State, get, routes};
use rocket_db_pools::Connection;

use crate::rig::Rig;
use crate::server::Orders;

pub(crate) fn routes() -> Vec<Route> {
    routes![
        plain,
        guarded,
        guarded_twice,
        hold,
        hold_and_panic,
        insert,
        insert_and_wait,
        insert_and_panic,
        insert_and_fail_a_guard,
        insert_and_forward,
        forwarded,
        insert_by_guard,
        orphan,
        backends,
        cut,
        streams,
    ]
}

/// An error of the database is a 500.
type Answer<T> = Result<T, Status>;

fn failed(_: sqlx::Error) -> Status {
    Status::InternalServerError
}

#[get("/plain")]
fn plain() -> &'static str {
    "hello"
}

async fn backend(db: &mut Connection<Orders>) -> Answer<i32> {
    let backend = sqlx::query_scalar("SELECT pg_backend_pid()");
    backend.fetch_one(&mut **db).await.map_err(failed)
}

/// Returns the number of the connection of the guard.
#[get("/guarded")]
async fn guarded(mut db: Connection<Orders>) -> Answer<String> {
    Ok(backend(&mut db).await?.to_string())
}

/// Returns the number of the connection of the guard, before and behind the gate.
#[get("/guarded_twice")]
async fn guarded_twice(rig: &State<Rig>, mut db: Connection<Orders>) -> Answer<String> {
    let first = backend(&mut db).await?;
    rig.wait_at_gate().await;
    Ok(format!("{first} {}", backend(&mut db).await?))
}

#[get("/hold")]
async fn hold(rig: &State<Rig>, _db: Connection<Orders>) -> &'static str {
    rig.wait_at_gate().await;
    "held"
}

#[get("/hold_and_panic")]
async fn hold_and_panic(_db: Connection<Orders>) -> &'static str {
    panic!("a handler with a bug");
}

#[get("/insert/<id>/<status>")]
async fn insert(rig: &State<Rig>, id: i32, status: u16) -> Answer<(Status, &'static str)> {
    rig.insert(id).await.map_err(failed)?;
    Ok((Status::new(status), "inserted"))
}

#[get("/insert_and_wait/<id>")]
async fn insert_and_wait(rig: &State<Rig>, id: i32) -> Answer<&'static str> {
    rig.insert(id).await.map_err(failed)?;
    rig.wait_at_gate().await;
    Ok("inserted")
}

#[get("/insert_and_panic/<id>")]
async fn insert_and_panic(rig: &State<Rig>, id: i32) -> &'static str {
    rig.insert(id).await.unwrap();
    panic!("a handler with a bug");
}

/// A guard that writes and then fails.
struct Fails;

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Fails {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, ()> {
        let rig: &State<Rig> = request.guard().await.unwrap();
        rig.insert(1).await.unwrap();
        Outcome::Error((Status::Unauthorized, ()))
    }
}

/// A guard that writes and then forwards to the next route.
struct Forwards;

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Forwards {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, ()> {
        let rig: &State<Rig> = request.guard().await.unwrap();
        rig.insert(1).await.unwrap();
        Outcome::Forward(Status::NotFound)
    }
}

#[get("/insert_and_fail_a_guard")]
fn insert_and_fail_a_guard(_guard: Fails) {}

#[get("/insert_and_forward", rank = 1)]
fn insert_and_forward(_guard: Forwards) {}

#[get("/insert_and_forward", rank = 2)]
async fn forwarded(rig: &State<Rig>) -> Answer<&'static str> {
    rig.insert(2).await.map_err(failed)?;
    Ok("forwarded")
}

/// Writes by the connection of the guard.
#[get("/insert_by_guard/<id>/<status>")]
async fn insert_by_guard(
    rig: &State<Rig>,
    mut db: Connection<Orders>,
    id: i32,
    status: u16,
) -> Answer<(Status, &'static str)> {
    let insert = rig.sql(&format!("INSERT INTO {{}} (id) VALUES ({id})"));
    let insert = sqlx::raw_sql(insert).execute(&mut *db).await;
    insert.map_err(failed)?;
    Ok((Status::new(status), "inserted"))
}

#[get("/orphan/<id>")]
async fn orphan(rig: &State<Rig>, id: i32) -> Answer<&'static str> {
    rig.insert_orphan(id).await.map_err(failed)?;
    Ok("this must not be sent")
}

/// Returns the connection of the first statement, and that of a statement behind the gate.
#[get("/backends")]
async fn backends(rig: &State<Rig>) -> Answer<String> {
    let first = rig.backend().await.map_err(failed)?;
    rig.wait_at_gate().await;
    let second = rig.backend().await.map_err(failed)?;
    Ok(format!("{first} {second}"))
}

/// Ends the connection of its own transaction, and ignores the error.
#[get("/cut")]
async fn cut(rig: &State<Rig>) -> &'static str {
    let cut = "SELECT pg_terminate_backend(pg_backend_pid())::int::bigint";
    assert!(rig.number(cut).await.is_err());
    "all is well"
}

/// Streams lines without an end, from a connection that the body holds. It waits at the gate after
/// each line.
#[get("/streams")]
fn streams(rig: &State<Rig>) -> rocket::response::stream::TextStream![String + '_] {
    let rig: &Rig = rig;
    rocket::response::stream::TextStream! {
        let held = rig.db().acquire().await;
        loop {
            yield format!("{}\n", held.is_ok());
            rig.wait_at_gate().await;
        }
    }
}
