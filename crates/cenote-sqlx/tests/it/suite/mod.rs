//! Tests that run on every database.

mod begin_text;
mod by_sql;
mod cancellation;
mod detach;
mod generic;
mod guide;
mod hygiene;
mod isolation;
mod lazy;
mod load;
mod migrations;
mod money;
mod nesting;
mod opening;
#[cfg(feature = "sea-orm")]
mod orm;
mod pinning;
mod sandbox;
mod settings;
mod setup;
mod sqlx_pool;
mod statements;
mod transactions;
mod used;
mod within;

use std::time::Duration;

use cenote_sqlx::Builder;
use sqlx::Executor;

use super::world::{self, DB, Db, Home};

/// A database, and a table with the columns `id` and `amount` for one test.
struct Rig {
    db: Db,
    table: String,
    _home: Home,
}

impl Rig {
    /// Creates the table `name`, which no other test may use.
    async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    async fn with(name: &str, customize: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        let (builder, home) = world::builder();
        let builder = builder
            .max_size(4)
            .acquire_timeout(Duration::from_secs(10))
            .clean_timeout(Duration::from_secs(20));
        let db = customize(builder).build().unwrap();
        let table = format!("cenote_{}_{name}", world_number());
        let rig = Self {
            db,
            table,
            _home: home,
        };
        rig.run("DROP TABLE IF EXISTS {}").await;
        rig.run("CREATE TABLE {} (id INTEGER PRIMARY KEY, amount BIGINT NOT NULL)")
            .await;
        rig
    }

    /// Returns the statement with the table's name for `{}`.
    fn sql(&self, text: &str) -> sqlx::SqlStr {
        world::sql(&text.replace("{}", &self.table))
    }

    async fn run(&self, text: &str) {
        sqlx::raw_sql(self.sql(text))
            .execute(&self.db)
            .await
            .unwrap();
    }

    /// Runs a text in a scope of its own: outside a scope a text that is undone at once is refused.
    async fn run_alone(&self, text: &str) {
        cenote::scope(self.run(text)).await;
    }

    async fn insert(&self, id: i32) -> Result<(), sqlx::Error> {
        self.insert_on(&self.db, id).await
    }

    async fn insert_on<'e>(
        &self,
        executor: impl Executor<'e, Database = DB>,
        id: i32,
    ) -> Result<(), sqlx::Error> {
        let sql = self.sql("INSERT INTO {} (id, amount) VALUES (?, 1)");
        sqlx::query(sql).bind(id).execute(executor).await.map(drop)
    }

    /// Returns the ids in order.
    async fn ids(&self) -> Vec<i32> {
        let sql = self.sql("SELECT id FROM {} ORDER BY id");
        sqlx::query_scalar(sql).fetch_all(&self.db).await.unwrap()
    }

    /// Asserts that every connection can be acquired, and that none has an open transaction or a
    /// changed session.
    async fn assert_clean(&self) {
        let max_size = self.db.pool().status().max_size;
        let mut leases = Vec::new();
        for _ in 0..max_size {
            let mut lease = self.db.acquire().await.unwrap();
            let changed: i64 = sqlx::query_scalar(world::CHANGED)
                .fetch_one(&mut lease)
                .await
                .unwrap();
            assert_eq!(changed, 0, "a changed session was lent");
            leases.push(lease);
        }
        let tables = self.sql("SELECT count(*) FROM {}");
        for lease in &mut leases {
            // A transaction that was left open would make this one fail or nest.
            let mut transaction = sqlx::Connection::begin(&mut **lease).await.unwrap();
            let _: i64 = sqlx::query_scalar(tables.clone())
                .fetch_one(&mut *transaction)
                .await
                .unwrap();
            transaction.rollback().await.unwrap();
        }
    }
}

/// Returns the first number of a query.
async fn number(db: &Db, sql: &str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(world::sql(sql)).fetch_one(db).await
}

/// A part of table names. Two copies of this repository have different ones, so that both can be
/// tested on one server at the same time.
fn world_number() -> u16 {
    let place = env!("CARGO_MANIFEST_DIR").bytes();
    place.fold(7, |number, byte| {
        number.wrapping_mul(31).wrapping_add(byte.into())
    })
}
