//! The floors of S13: one connection of each driver, without a pool. They show how much of a figure
//! is the driver. One task at a time can use them.

use std::str::FromStr;
use std::sync::Arc;

use sqlx::{Connection, PgConnection, SqliteConnection};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::statements::{ONE, READ, UPDATE, postgres, sqlite};
use super::{Database, Entry, SqlPeer, round, sqlite_options};
use crate::harness::sql::statements::prepare_on;

/// The floors by name.
pub const FLOORS: [(&str, &[Entry]); 2] = [
    (
        "floor: sqlx connection",
        &[
            (Database::Postgres, round::<OnPostgres>),
            (Database::Sqlite, round::<OnSqlite>),
        ],
    ),
    (
        "floor: tokio-postgres",
        &[(Database::Postgres, round::<Bare>)],
    ),
];

macro_rules! of_sqlx {
    ($name:ident, $connection:ty, $module:ident, |$url:ident| $open:expr) => {
        #[derive(Clone)]
        struct $name(Arc<Mutex<Option<$connection>>>);

        impl SqlPeer for $name {
            async fn open($url: &str) -> Self {
                let mut connection = $open.await.expect("a connection opens");
                prepare_on!($module, &mut connection);
                Self(Arc::new(Mutex::new(Some(connection))))
            }

            async fn one(&self) {
                $module::one(self.0.lock().await.as_mut().expect("it is open")).await;
            }

            async fn read(&self, id: i32) {
                $module::read(self.0.lock().await.as_mut().expect("it is open"), id).await;
            }

            async fn update(&self, id: i32) {
                $module::update(self.0.lock().await.as_mut().expect("it is open"), id).await;
            }

            async fn close(&self) {
                let connection = self.0.lock().await.take().expect("it is open");
                connection.close().await.expect("it closes");
            }
        }
    };
}

of_sqlx!(OnPostgres, PgConnection, postgres, |url| {
    PgConnection::connect(url)
});
of_sqlx!(OnSqlite, SqliteConnection, sqlite, |url| async {
    SqliteConnection::connect_with(&sqlite_options(url)?).await
});

/// A client, and its prepared statements.
#[derive(Clone)]
struct Bare(Arc<(Client, [Statement; 3])>);

impl SqlPeer for Bare {
    async fn open(url: &str) -> Self {
        let config = Config::from_str(url).expect("a URL is understood");
        let (client, connection) = config.connect(NoTls).await.expect("a connection opens");
        tokio::spawn(connection);
        let mut prepared = Vec::with_capacity(3);
        for sql in [ONE, READ, UPDATE] {
            prepared.push(client.prepare(sql).await.expect("it is prepared"));
        }
        let prepared = prepared.try_into().expect("bug: three are three");
        Self(Arc::new((client, prepared)))
    }

    async fn one(&self) {
        let (client, [one, ..]) = &*self.0;
        let row = client.query_one(one, &[]).await;
        assert_eq!(row.expect("a statement succeeds").get::<_, i32>(0), 1);
    }

    async fn read(&self, id: i32) {
        let (client, [_, read, _]) = &*self.0;
        let row = client.query_one(read, &[&id]).await;
        let _: i32 = row.expect("a read succeeds").get(0);
    }

    async fn update(&self, id: i32) {
        let (client, [.., update]) = &*self.0;
        let changed = client.execute(update, &[&id]).await;
        assert_eq!(changed.expect("an update succeeds"), 1);
    }

    /// The connection ends when its client is dropped.
    async fn close(&self) {}
}
