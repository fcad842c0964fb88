//! The peers with connections of a real driver: sqlx's own pool, which pings on every acquire and
//! on every return, and deadpool-postgres, which asks the connection whether it is closed.

use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::Manager;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{PgPool, SqlitePool};
use tokio_postgres::{Config, NoTls};

use super::statements::{ONE, READ, UPDATE};
use super::{Database, Entry, SIZE, SqlPeer, round};
use crate::harness::sql::statements::{prepare_on, statements_of};

/// The rounds of sqlx's pool.
pub const SQLX: &[Entry] = &[
    (Database::Postgres, round::<OnPostgres>),
    (Database::Sqlite, round::<OnSqlite>),
];

/// The rounds of deadpool-postgres.
pub const DEADPOOL: &[Entry] = &[(Database::Postgres, round::<Deadpool>)];

/// Returns the options of every connection to SQLite, which are the same for all pools.
pub fn sqlite_options(url: &str) -> Result<SqliteConnectOptions, sqlx::Error> {
    Ok(SqliteConnectOptions::from_str(url)?
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(5)))
}

#[derive(Clone)]
struct OnPostgres(PgPool);

impl SqlPeer for OnPostgres {
    async fn open(url: &str) -> Self {
        let pool = PgPoolOptions::new().max_connections(SIZE as u32);
        let pool = pool.connect_lazy(url).expect("a URL is understood");
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            let mut connection = pool.acquire().await.expect("a connection opens");
            prepare_on!(postgres, connection);
            held.push(connection);
        }
        Self(pool)
    }

    statements_of!(postgres);

    async fn close(&self) {
        self.0.close().await;
    }
}

#[derive(Clone)]
struct OnSqlite(SqlitePool);

impl SqlPeer for OnSqlite {
    async fn open(url: &str) -> Self {
        let options = sqlite_options(url).expect("a URL is understood");
        let pool = SqlitePoolOptions::new().max_connections(SIZE as u32);
        let pool = pool.connect_lazy_with(options);
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            let mut connection = pool.acquire().await.expect("a connection opens");
            prepare_on!(sqlite, connection);
            held.push(connection);
        }
        Self(pool)
    }

    statements_of!(sqlite);

    async fn close(&self) {
        self.0.close().await;
    }
}

#[derive(Clone)]
struct Deadpool(deadpool_postgres::Pool);

impl Deadpool {
    async fn acquire(&self) -> deadpool_postgres::Client {
        self.0.get().await.expect("an acquire succeeds")
    }
}

impl SqlPeer for Deadpool {
    async fn open(url: &str) -> Self {
        let config = Config::from_str(url).expect("a URL is understood");
        let pool = deadpool_postgres::Pool::builder(Manager::new(config, NoTls)).max_size(SIZE);
        let pool = pool.build().expect("the setup is in range");
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            let client = pool.get().await.expect("a connection opens");
            for sql in [ONE, READ, UPDATE] {
                client.prepare_cached(sql).await.expect("it is prepared");
            }
            held.push(client);
        }
        Self(pool)
    }

    async fn one(&self) {
        let client = self.acquire().await;
        let one = client.prepare_cached(ONE).await.expect("it is prepared");
        let row = client.query_one(&one, &[]).await;
        assert_eq!(row.expect("a statement succeeds").get::<_, i32>(0), 1);
    }

    async fn read(&self, id: i32) {
        let client = self.acquire().await;
        let read = client.prepare_cached(READ).await.expect("it is prepared");
        let row = client.query_one(&read, &[&id]).await;
        let _: i32 = row.expect("a read succeeds").get(0);
    }

    async fn update(&self, id: i32) {
        let client = self.acquire().await;
        let update = client.prepare_cached(UPDATE).await.expect("it is prepared");
        let changed = client.execute(&update, &[&id]).await;
        assert_eq!(changed.expect("an update succeeds"), 1);
    }

    /// A connection ends when its client is dropped.
    async fn close(&self) {
        self.0.close();
    }
}
