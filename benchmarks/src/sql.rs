//! cenote with real connections, by cenote-sqlx: `&db` is the executor, everything else is its default.

use std::time::Duration;

use cenote_benchmarks_harness::sql::{Database, Entry, SIZE, SqlPeer, round, sqlite_options};
use cenote_benchmarks_harness::{prepare_on, statements_of};
use cenote_sqlx::Db;
use sqlx::{Postgres, Sqlite};

/// Where it takes part.
pub(crate) const CENOTE: &[Entry] = &[
    (Database::Postgres, round::<OnPostgres>),
    (Database::Sqlite, round::<OnSqlite>),
];

/// Connections that nobody uses close at once; one that takes longer would show in the next round.
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

/// One writer at a time is its default too.
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
