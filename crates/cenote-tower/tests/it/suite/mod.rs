//! Tests that run on every database.

mod attribute;
mod bodies;
mod crowds;
mod extractor;
mod faults;
mod sandbox;
mod saturation;
mod statuses;
mod transactions;
mod uploads;
mod wiring;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Router, http::StatusCode};
use cenote_sqlx::Builder;
use cenote_tower::Problem;
use tokio::sync::Semaphore;

use super::world::{self, DB, Db, Home};
use crate::client::until;

/// A database for one test. It has a table with the column `id`, a table `child` whose rows must
/// refer to the first one at the commit, and a gate that handlers wait at.
#[derive(Clone)]
struct Rig {
    db: Db,
    table: Arc<str>,
    gate: Arc<Semaphore>,
    at_gate: Arc<AtomicUsize>,
    _home: Arc<Home>,
}

impl Rig {
    /// Creates the table `name`, which no other test may use.
    async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    async fn with(name: &str, customize: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        let table = format!("cenote_{}_{name}", world_number());
        let (builder, home) = world::builder(&table);
        let builder = builder
            .max_size(4)
            .acquire_timeout(Duration::from_secs(30))
            .clean_timeout(Duration::from_secs(30));
        let rig = Self {
            db: customize(builder).build().unwrap(),
            table: table.into(),
            gate: Arc::new(Semaphore::new(0)),
            at_gate: Arc::default(),
            _home: Arc::new(home),
        };
        rig.run("DROP TABLE IF EXISTS {}_child; DROP TABLE IF EXISTS {}_strict; DROP TABLE IF EXISTS {}")
            .await
            .unwrap();
        rig.run("CREATE TABLE {} (id INTEGER PRIMARY KEY)")
            .await
            .unwrap();
        rig.run(
            "CREATE TABLE {}_child (id INTEGER REFERENCES {} (id) DEFERRABLE INITIALLY DEFERRED)",
        )
        .await
        .unwrap();
        rig
    }

    /// Returns the statement with the table's name for `{}`.
    fn sql(&self, text: &str) -> sqlx::SqlStr {
        let text = text.replace("{}", &self.table);
        sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(text))
    }

    async fn run(&self, text: &str) -> Result<(), sqlx::Error> {
        let run = sqlx::raw_sql(self.sql(text)).execute(&self.db);
        run.await.map(drop)
    }

    async fn number(&self, text: &str) -> Result<i64, sqlx::Error> {
        let number = sqlx::query_scalar(self.sql(text));
        number.fetch_one(&self.db).await
    }

    async fn insert(&self, id: i32) -> Result<(), sqlx::Error> {
        self.run(&format!("INSERT INTO {{}} (id) VALUES ({id})"))
            .await
    }

    async fn rows(&self) -> i64 {
        self.number("SELECT count(*) FROM {}").await.unwrap()
    }

    /// Waits until the gate is opened for one more handler.
    async fn wait_at_gate(&self) {
        self.at_gate.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
    }

    async fn until_at_gate(&self, count: usize) {
        let seen = || self.at_gate.load(Ordering::SeqCst) >= count;
        until("the handlers are at the gate", seen).await;
    }

    async fn until_home(&self) {
        until("all connections are back", || {
            let status = self.db.pool().status();
            status.in_use + status.cleaning + status.waiting + status.checking == 0
        })
        .await;
    }

    /// Waits until all connections are back. Asserts that every connection can be acquired, that
    /// none has an open transaction or a changed session, and that the table can be written to.
    async fn until_whole(&self) {
        self.until_home().await;
        assert_eq!(self.number(world::OPEN).await.unwrap(), 0);
        let mut leases = Vec::new();
        for _ in 0..self.db.pool().status().max_size {
            let mut lease = self.db.acquire().await.unwrap();
            let changed = sqlx::query_scalar(world::CHANGED);
            let changed: i64 = changed.fetch_one(&mut lease).await.unwrap();
            assert_eq!(changed, 0, "a changed session was lent");
            leases.push(lease);
        }
        drop(leases);
        self.insert(-1).await.unwrap();
        self.run("DELETE FROM {} WHERE id = -1").await.unwrap();
    }

    /// Routes whose handlers use no transaction of their own.
    fn routes(&self) -> Router {
        Router::new()
            .route("/plain", get(|| async { "hello" }))
            .route("/rows", get(rows))
            .route("/hold", get(hold))
            .route("/insert/{id}/{status}", get(insert))
            .route("/insert_and_wait/{id}", get(insert_and_wait))
            .route("/insert_and_panic/{id}", get(insert_and_panic))
            .route("/insert_and_fail/{id}", get(insert_and_fail))
            .route("/orphan/{id}", get(orphan))
            .with_state(self.clone())
    }
}

async fn rows(State(rig): State<Rig>) -> Result<String, Problem> {
    Ok(rig.number("SELECT count(*) FROM {}").await?.to_string())
}

/// Holds a connection until the gate is opened.
async fn hold(State(rig): State<Rig>) -> Result<&'static str, Problem> {
    let _held = rig.db.acquire().await?;
    rig.wait_at_gate().await;
    Ok("held")
}

async fn insert(
    State(rig): State<Rig>,
    Path((id, status)): Path<(i32, u16)>,
) -> Result<StatusCode, Problem> {
    rig.insert(id).await?;
    Ok(StatusCode::from_u16(status).unwrap())
}

async fn insert_and_wait(
    State(rig): State<Rig>,
    Path(id): Path<i32>,
) -> Result<&'static str, Problem> {
    rig.insert(id).await?;
    rig.wait_at_gate().await;
    Ok("inserted")
}

async fn insert_and_panic(State(rig): State<Rig>, Path(id): Path<i32>) -> &'static str {
    rig.insert(id).await.unwrap();
    panic!("a handler with a bug");
}

/// Fails: the second insert violates the key.
async fn insert_and_fail(
    State(rig): State<Rig>,
    Path(id): Path<i32>,
) -> Result<&'static str, Problem> {
    rig.insert(id).await?;
    rig.insert(id).await?;
    Ok("never")
}

/// Inserts a row that violates a deferred constraint, so that the commit fails.
async fn orphan(State(rig): State<Rig>, Path(id): Path<i32>) -> Result<&'static str, Problem> {
    rig.run(&format!("INSERT INTO {{}}_child (id) VALUES ({id})"))
        .await?;
    Ok("this must not be sent")
}

/// A part of table names. Two copies of this repository have different ones, so that both can be
/// tested on one server at the same time.
fn world_number() -> u16 {
    let place = env!("CARGO_MANIFEST_DIR").bytes();
    place.fold(7, |number, byte| {
        number.wrapping_mul(31).wrapping_add(byte.into())
    })
}
