//! PostgreSQL, with a schema for each test.

use std::sync::OnceLock;

use cenote_diesel::Diesel;
use cenote_diesel::diesel::sql_types::{BigInt, Bool, Integer};
use cenote_diesel::diesel::{self, dsl::sql};
use cenote_diesel::diesel_async::{
    AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
};
use cenote_servers::Found;

use super::World;
use crate::eventually;

pub(crate) struct Pg {
    /// The server's URL, with the schema.
    pub(crate) url: String,
}

fn shared() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND.get_or_init(|| cenote_servers::postgres::find().unwrap());
    found.url()
}

impl Pg {
    pub(crate) async fn at(server: &str, name: &str) -> Self {
        let name = format!("cenote_di_{}", &name[..name.len().min(50)]);
        let mut admin = AsyncPgConnection::establish(server).await.unwrap();
        let make = format!(
            "set client_min_messages = error; drop schema if exists {name} cascade; \
             create schema {name}; create table {name}.t (a int)"
        );
        admin.batch_execute(&make).await.unwrap();
        let sign = if server.contains('?') { '&' } else { '?' };
        let url = format!(
            "{server}{sign}application_name={name}&options=-csearch_path%3D{name}&sslmode=disable"
        );
        Self { url }
    }

    pub(crate) async fn admin(&self) -> Admin {
        let server = self.url.split("application_name").next().unwrap();
        let server = server.trim_end_matches(['?', '&']);
        Admin(AsyncPgConnection::establish(server).await.unwrap())
    }

    /// Returns how many connections of this test the server has, and how many run something.
    pub(crate) async fn sessions(&self) -> (i64, i64) {
        let name = self.url.split("application_name=").nth(1).unwrap();
        let name = name.split('&').next().unwrap();
        let mut admin = self.admin().await;
        let all =
            format!("select count(*) from pg_stat_activity where application_name = '{name}'");
        let busy = format!("{all} and state = 'active'");
        (admin.count(&all).await, admin.count(&busy).await)
    }
}

/// A connection beside the pool.
pub(crate) struct Admin(pub(crate) AsyncPgConnection);

impl Admin {
    pub(crate) async fn count(&mut self, query: &str) -> i64 {
        let query = sql::<BigInt>(&format!("({query})"));
        diesel::select(query).get_result(&mut self.0).await.unwrap()
    }

    /// Ends a process of the server, and waits until it is gone.
    pub(crate) async fn kill(&mut self, backend: i32) {
        let kill = sql::<Bool>(&format!("pg_terminate_backend({backend})"));
        let _: bool = diesel::select(kill).get_result(&mut self.0).await.unwrap();
        let is_there = format!("select count(*) from pg_stat_activity where pid = {backend}");
        eventually("it is gone", async || self.count(&is_there).await == 0).await;
    }
}

/// Returns the number of the server's process.
pub(crate) async fn backend(connection: &mut AsyncPgConnection) -> i32 {
    let pid = diesel::select(sql::<Integer>("pg_backend_pid()"));
    pid.get_result(connection).await.unwrap()
}

impl World for Pg {
    type C = AsyncPgConnection;

    async fn new(name: &str) -> Self {
        Self::at(shared(), name).await
    }

    fn manager(&self) -> Diesel<AsyncPgConnection> {
        Diesel::new(&self.url)
    }

    async fn rows(&self) -> Vec<i32> {
        let mut own = AsyncPgConnection::establish(&self.url).await.unwrap();
        let query = diesel::select(sql::<Integer>("a from t order by a"));
        query.load(&mut own).await.unwrap()
    }

    /// The server accepts a savepoint only in a transaction.
    async fn is_open(connection: &mut AsyncPgConnection) -> bool {
        connection.batch_execute("savepoint asks").await.is_ok()
    }

    async fn echo(connection: &mut AsyncPgConnection, number: i32) -> i32 {
        let query = diesel::select(diesel::IntoSql::into_sql::<Integer>(number));
        query.get_result(connection).await.unwrap()
    }
}
