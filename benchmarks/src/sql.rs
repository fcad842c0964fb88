//! cenote with real connections, by cenote-sqlx. The executor is `&db`, and everything else is its
//! default.

use std::time::Duration;

use crate::harness::sql::statements::{prepare_on, statements_of};
use crate::harness::sql::{Database, Entry, SIZE, SqlPeer, round, sqlite_options};
use cenote_sqlx::Db;
use sqlx::{Postgres, Sqlite};

/// The rounds of cenote.
pub(crate) const CENOTE: &[Entry] = &[
    (Database::Postgres, round::<OnPostgres>),
    (Database::Sqlite, round::<OnSqlite>),
];

/// Idle connections close at once. A slow close would disturb the next round.
const CLOSE: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct OnPostgres(Db<Postgres>);

impl SqlPeer for OnPostgres {
    async fn open(url: &str) -> Self {
        let db = Db::postgres(url).max_size(SIZE).build();
        let db = db.expect("the setup is in range");
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            let mut lease = db.acquire().await.expect("a connection opens");
            let executor = &mut lease;
            prepare_on!(postgres, executor);
            held.push(lease);
        }
        Self(db)
    }

    statements_of!(postgres);

    async fn close(&self) {
        self.0.pool().close_within(CLOSE).await;
    }
}

/// One writer at a time is cenote-sqlx's default for SQLite.
#[derive(Clone)]
struct OnSqlite(Db<Sqlite>);

impl SqlPeer for OnSqlite {
    async fn open(url: &str) -> Self {
        let options = sqlite_options(url).expect("a URL is understood");
        let db = Db::with_options(options).max_size(SIZE).build();
        let db = db.expect("the setup is in range");
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            let mut lease = db.acquire().await.expect("a connection opens");
            let executor = &mut lease;
            prepare_on!(sqlite, executor);
            held.push(lease);
        }
        Self(db)
    }

    statements_of!(sqlite);

    async fn close(&self) {
        self.0.pool().close_within(CLOSE).await;
    }
}
