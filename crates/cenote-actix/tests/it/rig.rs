//! A database on a real PostgreSQL, with a table for one test and a gate that handlers wait at.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cenote_servers::Found;
use cenote_sqlx::{Builder, Db};
use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr, SqlStr};
use tokio::sync::Semaphore;

use crate::client::until;

/// The URL of the server, which is kept until the end of the process.
pub(crate) fn server() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let find = || cenote_servers::postgres::find().unwrap_or_else(|error| panic!("{error}"));
    FOUND.get_or_init(find).url()
}

/// A table with the column `id`, a table `child` whose rows must refer to the first one at the
/// commit, and a gate.
#[derive(Clone)]
pub(crate) struct Rig {
    table: Arc<str>,
    db: Arc<OnceLock<Db<Postgres>>>,
    gate: Arc<Semaphore>,
    at_gate: Arc<AtomicUsize>,
}

impl Rig {
    /// Makes a rig without a database. No other test may use this name.
    pub(crate) fn without_db(name: &str) -> Self {
        Self {
            table: format!("cenote_{}_{name}", place()).into(),
            db: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            at_gate: Arc::default(),
        }
    }

    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    pub(crate) async fn with(
        name: &str,
        customize: impl FnOnce(Builder<Postgres>) -> Builder<Postgres>,
    ) -> Self {
        let rig = Self::without_db(name);
        let builder = Db::postgres(rig.url())
            .max_size(4)
            .acquire_timeout(Duration::from_secs(30))
            .clean_timeout(Duration::from_secs(30));
        rig.connect(customize(builder).build().unwrap()).await;
        rig
    }

    /// Makes a rig whose acquires give up after a second. Its connections are open, so that no
    /// caller waits for an open.
    pub(crate) async fn impatient(name: &str, size: usize) -> Self {
        let limit = Duration::from_secs(1);
        let rig = Self::with(name, |builder| {
            builder.max_size(size).min_size(size).acquire_timeout(limit)
        });
        let rig = rig.await;
        rig.db().warm().await.unwrap();
        rig
    }

    /// Returns the URL of the server, with an application name of this rig.
    pub(crate) fn url(&self) -> String {
        let url = server();
        let sign = if url.contains('?') { '&' } else { '?' };
        format!("{url}{sign}application_name={}", self.table)
    }

    /// Takes this database, and makes the tables.
    pub(crate) async fn connect(&self, db: Db<Postgres>) {
        assert!(self.db.set(db).is_ok(), "a rig has one database");
        let tables = "DROP TABLE IF EXISTS {}_child; DROP TABLE IF EXISTS {}; \
             CREATE TABLE {} (id INTEGER PRIMARY KEY); \
             CREATE TABLE {}_child (id INTEGER REFERENCES {} (id) DEFERRABLE INITIALLY DEFERRED)";
        self.run(tables).await.unwrap();
    }

    pub(crate) fn db(&self) -> &Db<Postgres> {
        self.db.get().expect("the rig is connected")
    }

    /// Returns the statement with the table's name for `{}`.
    pub(crate) fn sql(&self, text: &str) -> SqlStr {
        AssertSqlSafe(text.replace("{}", &self.table)).into_sql_str()
    }

    pub(crate) async fn run(&self, text: &str) -> Result<(), sqlx::Error> {
        let run = sqlx::raw_sql(self.sql(text)).execute(self.db());
        run.await.map(drop)
    }

    pub(crate) async fn number(&self, text: &str) -> Result<i64, sqlx::Error> {
        let number = sqlx::query_scalar(self.sql(text));
        number.fetch_one(self.db()).await
    }

    pub(crate) async fn insert(&self, id: i32) -> Result<(), sqlx::Error> {
        self.run(&format!("INSERT INTO {{}} (id) VALUES ({id})"))
            .await
    }

    /// Inserts a row that violates a deferred constraint, so that the commit fails.
    pub(crate) async fn insert_orphan(&self, id: i32) -> Result<(), sqlx::Error> {
        self.run(&format!("INSERT INTO {{}}_child (id) VALUES ({id})"))
            .await
    }

    pub(crate) async fn rows(&self) -> i64 {
        self.number("SELECT count(*) FROM {}").await.unwrap()
    }

    /// Counts the rows on a connection of another pool, because those of the rig may be ending with
    /// the workers that have opened them.
    pub(crate) async fn rows_seen_from_outside(&self) -> i64 {
        let count = sqlx::query_scalar(self.sql("SELECT count(*) FROM {}"));
        count.fetch_one(&outside()).await.unwrap()
    }

    /// Returns the number of the caller's connection on the server.
    pub(crate) async fn backend(&self) -> Result<i64, sqlx::Error> {
        self.number("SELECT pg_backend_pid()::bigint").await
    }

    /// Ends all connections of the rig on the server, and returns how many they were.
    pub(crate) async fn kill_all(&self) -> i64 {
        let kill = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
             WHERE application_name = '{}'";
        let killed = sqlx::query_scalar(self.sql(kill))
            .fetch_one(&outside())
            .await;
        killed.unwrap()
    }

    /// Waits until the gate is opened for one more handler.
    pub(crate) async fn wait_at_gate(&self) {
        self.at_gate.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
    }

    pub(crate) fn open_gate(&self, handlers: usize) {
        self.gate.add_permits(handlers);
    }

    pub(crate) async fn until_at_gate(&self, count: usize) {
        let seen = || self.at_gate.load(Ordering::SeqCst) >= count;
        until("the handlers are at the gate", seen).await;
    }

    /// Waits until all connections are back. Asserts that no transaction is open on the server, and
    /// that every connection can be acquired.
    pub(crate) async fn until_whole(&self) {
        let pool = self.db().pool();
        until("all connections are back", || {
            let status = pool.status();
            status.in_use + status.cleaning + status.waiting + status.checking == 0
        })
        .await;
        let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' \
             AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
        assert_eq!(self.number(open).await.unwrap(), 0);
        let mut leases = Vec::new();
        for _ in 0..pool.status().max_size {
            leases.push(self.db().acquire().await.unwrap());
        }
    }
}

/// A pool of one connection, with another application name.
fn outside() -> Db<Postgres> {
    Db::postgres(server()).max_size(1).build().unwrap()
}

/// Asserts that each text names one connection twice, and that no two texts name the same one.
pub(crate) fn assert_apart(backends: &[String]) {
    let mut seen = HashSet::new();
    for backends in backends {
        let (first, second) = backends.split_once(' ').unwrap();
        assert_eq!(first, second, "one connection for one transaction");
        assert!(seen.insert(first), "two requests shared it");
    }
}

/// A part of table names. Two copies of this repository have different ones, so that both can be
/// tested on one server at the same time.
fn place() -> u16 {
    let place = env!("CARGO_MANIFEST_DIR").bytes();
    place.fold(7, |number, byte| {
        number.wrapping_mul(31).wrapping_add(byte.into())
    })
}
