//! The pool of one process, in each system. All of them send the same statement.

use std::time::Duration;

use cenote_fleet::Fleet;
use deadpool_postgres::{Manager, Runtime};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio_postgres::{Config, NoTls};

use crate::system::{CAPACITY, System};

/// Sent by the simple protocol, because PgBouncer before 1.21 knows no prepared statements.
const STATEMENT: &str = "select pg_sleep(0.02)";

/// How long a statement holds its session. At 40 sessions it makes 2,000 statements per second,
/// which leaves most of two processors idle, so that sessions are the limit.
pub(crate) const STATEMENT_SECONDS: f64 = 0.02;

/// A caller gives up after this time.
const LIMIT: Duration = Duration::from_secs(2);

/// Sessions that are not used are closed after this time, where a pool can do that and its
/// processes could use more than the server has.
const IDLE: Duration = Duration::from_secs(1);

/// The group of the fleet.
pub(crate) const GROUP: &str = "bench";

/// The pool of one process.
#[derive(Clone)]
pub(crate) enum Pool {
    Sqlx(PgPool),
    Deadpool(deadpool_postgres::Pool),
    Cenote(cenote_postgres::Pool),
}

impl Pool {
    /// Opens the pool. A fleet lasts as long as the returned handle.
    pub(crate) async fn open(
        system: System,
        process: usize,
        url: &str,
    ) -> Result<(Self, Option<Fleet>), String> {
        let max_size = system.max_size(process);
        match system {
            System::SqlxShare | System::SqlxAll => {
                let idle = (system == System::SqlxAll).then_some(IDLE);
                let pool = PgPoolOptions::new()
                    .max_connections(max_size)
                    .test_before_acquire(false)
                    .idle_timeout(idle)
                    .acquire_timeout(LIMIT)
                    .connect_lazy(url);
                Ok((Self::Sqlx(pool.map_err(text)?), None))
            }
            System::DeadpoolShare
            | System::DeadpoolAll
            | System::DeadpoolNoLimit
            | System::PgBouncer => {
                let manager = Manager::new(url.parse().map_err(text)?, NoTls);
                let pool = deadpool_postgres::Pool::builder(manager)
                    .max_size(max_size as usize)
                    .runtime(Runtime::Tokio1)
                    .wait_timeout(Some(LIMIT))
                    .create_timeout(Some(LIMIT))
                    .build();
                Ok((Self::Deadpool(pool.map_err(text)?), None))
            }
            System::Cenote => join(url).await,
        }
    }

    /// Makes one statement on a session.
    pub(crate) async fn call(&self) -> Result<(), String> {
        match self {
            Self::Sqlx(pool) => {
                let done = sqlx::raw_sql(STATEMENT).execute(pool).await;
                done.map(drop).map_err(text)
            }
            Self::Deadpool(pool) => {
                let client = pool.get().await.map_err(text)?;
                client.batch_execute(STATEMENT).await.map_err(text)
            }
            Self::Cenote(pool) => pool.batch_execute(STATEMENT).await.map_err(text),
        }
    }
}

async fn join(url: &str) -> Result<(Pool, Option<Fleet>), String> {
    let mut options: Config = url.parse().map_err(text)?;
    let joining = Fleet::postgres(&options, GROUP).map_err(text)?;
    options.application_name(joining.tag("bench"));
    let pool = cenote_postgres::Pool::with_options(options)
        // No caller gives up a statement. Its canceller would need a place in every process.
        .cancel_on_server(false)
        .acquire_timeout(LIMIT)
        .build();
    let pool = pool.map_err(text)?;
    let fleet = joining.capacity(CAPACITY).join(&pool).await;
    Ok((Pool::Cenote(pool), Some(fleet.map_err(text)?)))
}

/// Returns the error with its causes, in one line.
fn text(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text.replace('\n', " ")
}
