//! Tests that run on every database.

mod endings;
mod handlers;
mod nesting;
mod options;

use std::time::Duration;

use super::world::{self, Db, Home};
pub(crate) use crate::world::{Done, Problem};

/// A database, and a table with the column `id` for one test.
pub(crate) struct Rig {
    pub(crate) db: Db,
    table: String,
    _home: Home,
}

impl Rig {
    /// Creates the table `name`, which no other test may use.
    pub(crate) async fn new(name: &str) -> Self {
        let (builder, home) = world::builder();
        let builder = builder
            .max_size(4)
            .acquire_timeout(Duration::from_secs(10))
            .clean_timeout(Duration::from_secs(20));
        let rig = Self {
            db: builder.build().unwrap(),
            table: crate::world::table(name),
            _home: home,
        };
        rig.run("DROP TABLE IF EXISTS {}_late").await.unwrap();
        rig.run("DROP TABLE IF EXISTS {}").await.unwrap();
        rig.run("CREATE TABLE {} (id INTEGER PRIMARY KEY)")
            .await
            .unwrap();
        rig
    }

    /// Returns the statement with the table's name for `{}`.
    pub(crate) fn sql(&self, text: &str) -> sqlx::SqlStr {
        world::sql(&text.replace("{}", &self.table))
    }

    pub(crate) async fn run(&self, text: &str) -> Done {
        let sql = self.sql(text);
        sqlx::raw_sql(sql).execute(&self.db).await.map(drop)
    }

    /// Inserts a row by way of `&db`, without naming a transaction.
    pub(crate) async fn insert(&self, id: i32) -> Done {
        let sql = self.sql("INSERT INTO {} (id) VALUES (?)");
        sqlx::query(sql).bind(id).execute(&self.db).await.map(drop)
    }

    /// Returns the ids in order.
    pub(crate) async fn ids(&self) -> Vec<i32> {
        let sql = self.sql("SELECT id FROM {} ORDER BY id");
        sqlx::query_scalar(sql).fetch_all(&self.db).await.unwrap()
    }

    /// Asserts that every connection can be acquired and that none has an open transaction.
    pub(crate) async fn assert_clean(&self) {
        let mut leases = Vec::new();
        for _ in 0..self.db.pool().status().max_size {
            leases.push(self.db.acquire().await.unwrap());
        }
        for lease in &mut leases {
            // A transaction that was left open would make this one fail or nest.
            let mut transaction = sqlx::Connection::begin(&mut **lease).await.unwrap();
            let count = sqlx::query(self.sql("SELECT count(*) FROM {}"));
            count.execute(&mut *transaction).await.unwrap();
            transaction.rollback().await.unwrap();
        }
    }
}
