//! SeaORM on the handle.

mod cancellation;
mod entities;
mod errors;
mod migrations;
mod sandbox;
mod streams;
mod transactions;

use std::time::Duration;

use cenote_sqlx::{Builder, Lease};
use sea_orm::DbErr;

use super::world::{self, DB, Db, Home};
use super::world_number;
use crate::bakery::{self, bake};

/// A schema with the tables of the entities, for one test.
struct Rig {
    db: Db,
    home: Home,
    schema: String,
}

impl Rig {
    /// Creates the schema `name`, which no other test may use.
    async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    async fn with(name: &str, customize: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        let rig = Self::empty(name, customize).await;
        bakery::build(&rig.db).await.unwrap();
        rig
    }

    /// Without tables.
    async fn empty(name: &str, customize: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        let schema = format!("cenote_o{}_{name}", world_number());
        let (admin, home) = world::builder();
        let admin = admin.max_size(1).build().unwrap();
        for sql in world::FRESH {
            let sql = world::sql(&sql.replace("{}", &schema));
            sqlx::raw_sql(sql).execute(&admin).await.unwrap();
        }
        let builder = Db::from_url(world::inside(&home, &schema))
            .max_size(4)
            .acquire_timeout(Duration::from_secs(10))
            .clean_timeout(Duration::from_secs(20));
        Self {
            db: customize(builder).build().unwrap(),
            home,
            schema,
        }
    }

    async fn bake(&self, name: &str) -> Result<(), DbErr> {
        bake(&self.db, name).await.map(drop)
    }

    async fn cakes(&self) -> Vec<String> {
        bakery::cakes(&self.db).await.unwrap()
    }

    /// Asserts that every connection can be acquired, and that none has an open transaction.
    async fn assert_clean(&self) {
        let mut leases: Vec<Lease<DB>> = Vec::new();
        for _ in 0..self.db.pool().status().max_size {
            leases.push(self.db.acquire().await.unwrap());
        }
        for lease in &mut leases {
            // A transaction that was left open would make this one fail or nest.
            let mut transaction = sqlx::Connection::begin(&mut **lease).await.unwrap();
            let count = "SELECT count(*) FROM cakes";
            let count = sqlx::query_scalar::<_, i64>(count).fetch_one(&mut *transaction);
            count.await.unwrap();
            transaction.rollback().await.unwrap();
        }
    }
}
