//! MariaDB, with a database for each test.

use std::sync::OnceLock;

use cenote_diesel::Diesel;
use cenote_diesel::diesel::sql_types::{BigInt, Integer};
use cenote_diesel::diesel::{self, dsl::sql};
use cenote_diesel::diesel_async::{
    AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection,
};
use cenote_servers::Found;

use super::World;
use crate::eventually;

pub(crate) struct My {
    server: String,
    name: String,
}

fn shared() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND.get_or_init(|| cenote_servers::mariadb::find().unwrap());
    found.url()
}

impl My {
    pub(crate) async fn at(url: &str, name: &str) -> Self {
        let name = format!("cenote_di_{}", &name[..name.len().min(50)]);
        let (scheme, rest) = url.split_once("://").unwrap();
        let server = format!("{scheme}://{}", rest.split('/').next().unwrap());
        let world = Self { server, name };
        let name = &world.name;
        let make = format!(
            "drop database if exists {name}; create database {name}; \
             create table {name}.t (a int) engine = innodb"
        );
        world.admin().await.0.batch_execute(&make).await.unwrap();
        world
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/{}?prefer_socket=false", self.server, self.name)
    }

    pub(crate) async fn admin(&self) -> Admin {
        let url = format!("{}/?prefer_socket=false", self.server);
        Admin(AsyncMysqlConnection::establish(&url).await.unwrap())
    }

    /// Returns how many connections of this test the server has, and how many run something.
    pub(crate) async fn sessions(&self) -> (i64, i64) {
        let mut admin = self.admin().await;
        let all = format!(
            "select count(*) from information_schema.processlist where db = '{}'",
            self.name
        );
        let busy = format!("{all} and command <> 'Sleep'");
        (admin.count(&all).await, admin.count(&busy).await)
    }
}

/// A connection beside the pool.
pub(crate) struct Admin(pub(crate) AsyncMysqlConnection);

impl Admin {
    pub(crate) async fn count(&mut self, query: &str) -> i64 {
        let query = sql::<BigInt>(&format!("({query})"));
        diesel::select(query).get_result(&mut self.0).await.unwrap()
    }

    /// Ends a session, and waits until it is gone.
    pub(crate) async fn kill(&mut self, session: i64) {
        self.0
            .batch_execute(&format!("kill {session}"))
            .await
            .unwrap();
        let is_there =
            format!("select count(*) from information_schema.processlist where id = {session}");
        eventually("it is gone", async || self.count(&is_there).await == 0).await;
    }
}

/// Returns the number of the session.
pub(crate) async fn session(connection: &mut AsyncMysqlConnection) -> i64 {
    let id = diesel::select(sql::<BigInt>("connection_id()"));
    id.get_result(connection).await.unwrap()
}

impl World for My {
    type C = AsyncMysqlConnection;

    async fn new(name: &str) -> Self {
        Self::at(shared(), name).await
    }

    fn manager(&self) -> Diesel<AsyncMysqlConnection> {
        Diesel::new(self.url())
    }

    async fn rows(&self) -> Vec<i32> {
        let mut own = AsyncMysqlConnection::establish(&self.url()).await.unwrap();
        let query = diesel::select(sql::<Integer>("a from t order by a"));
        query.load(&mut own).await.unwrap()
    }

    async fn is_open(connection: &mut AsyncMysqlConnection) -> bool {
        let query = diesel::select(sql::<BigInt>("@@in_transaction"));
        query.get_result::<i64>(connection).await.unwrap() == 1
    }

    async fn echo(connection: &mut AsyncMysqlConnection, number: i32) -> i32 {
        let query = diesel::select(diesel::IntoSql::into_sql::<Integer>(number));
        query.get_result(connection).await.unwrap()
    }
}
