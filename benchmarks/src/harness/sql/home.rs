//! The place of the table: a schema of its own on a real server, or a file. Dropping it leaves
//! nothing behind.

use std::env;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, PgConnection, Postgres, SqliteConnection};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::statements::{CREATE, FILL};
use super::{Database, peers};

/// The variable that names a PostgreSQL server. `cargo xtask` finds or starts one.
const SERVER: &str = "CENOTE_POSTGRES_URL";

/// A database with the table, and its URL.
#[derive(Debug)]
pub struct Home {
    url: String,
    /// Dropped at the end.
    schema: Option<String>,
    /// Lives as long as the table.
    _folder: Option<TempDir>,
}

impl Home {
    /// Makes the table. It must not be called in a runtime.
    pub fn make(database: Database) -> Result<Self, String> {
        match database {
            Database::Postgres => Self::on_postgres(),
            Database::Sqlite => Self::in_file(),
        }
    }

    /// Returns the URL, which is the same for all pools.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL turns TLS off, and the wait for the disk, which would hide the pool.
    fn on_postgres() -> Result<Self, String> {
        static SCHEMAS: AtomicU32 = AtomicU32::new(1);
        let server = env::var(SERVER).map_err(|_| {
            format!("{SERVER} names no PostgreSQL server; `cargo xtask bench` or `test` finds one")
        })?;
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let schema = format!("cenote_bench_{}_{number}", process::id());
        let sign = if server.contains('?') { '&' } else { '?' };
        let url = format!(
            "{server}{sign}sslmode=disable&options=-c%20search_path%3D{schema}%20-c%20synchronous_commit%3Doff"
        );
        wait_for(async {
            let mut connection = PgConnection::connect(&url).await?;
            run(&mut connection, format!("CREATE SCHEMA {schema}")).await?;
            sqlx::query(CREATE).execute(&mut connection).await?;
            sqlx::query(FILL).execute(&mut connection).await?;
            connection.close().await
        })?;
        Ok(Self {
            url,
            schema: Some(schema),
            _folder: None,
        })
    }

    fn in_file() -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let url = format!(
            "sqlite://{}?mode=rwc",
            folder.path().join("bench.db").display()
        );
        wait_for(async {
            let options = peers::sqlite_options(&url)?;
            let mut connection = SqliteConnection::connect_with(&options).await?;
            sqlx::query(CREATE).execute(&mut connection).await?;
            sqlx::query(FILL).execute(&mut connection).await?;
            connection.close().await
        })?;
        Ok(Self {
            url,
            schema: None,
            _folder: Some(folder),
        })
    }
}

impl Home {
    /// Drops a schema. A file goes with its folder.
    pub(super) fn clear(&mut self) {
        let Some(schema) = self.schema.take() else {
            return;
        };
        let dropped = wait_for(async {
            let mut connection = PgConnection::connect(&self.url).await?;
            run(&mut connection, format!("DROP SCHEMA {schema} CASCADE")).await?;
            connection.close().await
        });
        if let Err(error) = dropped {
            eprintln!("the schema {schema} is left behind: {error}");
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.clear();
    }
}

async fn run(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    let query = sqlx::query::<Postgres>(AssertSqlSafe(sql));
    query.execute(connection).await.map(drop)
}

fn wait_for(work: impl Future<Output = Result<(), sqlx::Error>>) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(work).map_err(|error| error.to_string())
}
