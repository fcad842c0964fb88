//! The dialect of PostgreSQL.

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Error, Executor, Postgres, Row};

use crate::build_error::BuildError;
use crate::builder::Draft;
use crate::credentials::Credentials;
use crate::dialect::{Dialect, statements};
use crate::error::{self, Class};
use crate::scan::{Dirt, Word, words};
use crate::session::Progress;
use crate::template::Template;
use crate::transaction::TransactionOptions;

/// `DISCARD ALL` without its `DEALLOCATE ALL`, because the driver keeps its prepared statements.
const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

statements!(Postgres);

impl Dialect for Postgres {
    const PROBE: &'static str = "SELECT 1";
    const FAILED_COMMIT_ENDS: bool = true;

    fn classify(error: &Error) -> Class {
        error::classify(error, judge)
    }

    fn scan(sql: &str) -> Dirt {
        words(sql, judge_word)
    }

    fn template(
        options: PgConnectOptions,
        draft: &mut Draft,
    ) -> Result<PgConnectOptions, BuildError> {
        if draft.pooled {
            // PgBouncer refuses a connection that sets this, unless it is configured otherwise.
            return Ok(options.extra_float_digits(None));
        }
        Ok(options)
    }

    fn with_credentials(
        options: PgConnectOptions,
        credentials: &Credentials,
    ) -> Option<PgConnectOptions> {
        let options = options.username(credentials.user());
        Some(match credentials.password() {
            Some(password) => options.password(password),
            None => options,
        })
    }

    /// The process id of the backend. The driver does not show it, so the server is asked.
    type Brake = Option<i32>;

    async fn brake(
        connection: &mut PgConnection,
        template: &Template<Self>,
    ) -> Result<Option<i32>, Error> {
        if !template.cancel {
            return Ok(None);
        }
        let number = sqlx::query_scalar("SELECT pg_backend_pid()").persistent(false);
        number.fetch_one(connection).await.map(Some)
    }

    /// The driver counts the answers that it has not read, so the rest can be read to its end. A
    /// long rest is cancelled first. The cancel request is answered before the next statement is
    /// sent, so it cannot cancel that one.
    async fn settle(
        connection: &mut PgConnection,
        progress: Progress,
        brake: &Option<i32>,
        template: &Template<Self>,
        care: bool,
    ) -> Result<(), Error> {
        match brake {
            // The rest of the rows belongs to a transaction that goes on.
            _ if care && progress == Progress::BetweenRows => {}
            Some(backend) => cancel(template, *backend).await?,
            None => {
                return Err(error::lost(
                    "an operation was dropped, and cancelling is switched off",
                ));
            }
        }
        drain(connection).await
    }

    async fn reset(connection: &mut PgConnection, dirt: Dirt) -> Result<(), Error> {
        if dirt.has(Dirt::PREPARED) && !knows_its_statements(connection).await? {
            connection.clear_cached_statements().await?;
            connection.execute("DEALLOCATE ALL").await?;
        }
        connection.execute(RESET).await.map(drop)
    }

    fn begin(options: &TransactionOptions) -> Option<String> {
        if *options == TransactionOptions::default() {
            return None;
        }
        let mut sql = String::from("BEGIN");
        if let Some(isolation) = options.isolation {
            sql.push_str(" ISOLATION LEVEL ");
            sql.push_str(isolation.sql());
        }
        if options.read_only {
            sql.push_str(" READ ONLY");
        }
        Some(sql)
    }
}

/// Returns whether all prepared statements of the session are those of the driver.
async fn knows_its_statements(connection: &mut PgConnection) -> Result<bool, Error> {
    let sql = "SELECT count(*) FILTER (WHERE from_sql), count(*) FROM pg_prepared_statements";
    // Not prepared, so that this statement is not counted.
    let row = connection.fetch_one(sqlx::raw_sql(sql)).await?;
    let (by_sql, all): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    Ok(by_sql == 0 && usize::try_from(all) == Ok(connection.cached_statements_size()))
}

/// Reads all answers to their end. Errors among them belong to the dropped operation.
async fn drain(connection: &mut PgConnection) -> Result<(), Error> {
    loop {
        match connection.flush().await {
            Ok(()) => return Ok(()),
            Err(error) if Postgres::classify(&error).poisons() => return Err(error),
            Err(_) => {}
        }
    }
}

/// Cancels the statement of `backend` over another connection, which is closed when no other cancel
/// request uses it.
async fn cancel(template: &Template<Postgres>, backend: i32) -> Result<(), Error> {
    let _turn = Turn(template);
    let mut canceller = template.canceller.lock().await;
    let mut connection = match canceller.take() {
        Some(connection) => connection,
        None => template.connect().await?,
    };
    sqlx::query("SELECT pg_cancel_backend($1)")
        .bind(backend)
        .execute(&mut connection)
        .await?;
    *canceller = Some(connection);
    drop(canceller);
    // If another request has the lock now, that request closes the connection.
    let spare = template.canceller.try_lock().ok();
    if let Some(connection) = spare.and_then(|mut canceller| canceller.take()) {
        let _ = connection.close().await;
    }
    Ok(())
}

/// A use of the connection that sends cancel requests. A request that is dropped must not leave the
/// connection open.
struct Turn<'a>(&'a Template<Postgres>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // If another request has the lock, that request closes the connection.
        if let Ok(mut canceller) = self.0.canceller.try_lock() {
            *canceller = None;
        }
    }
}

fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    let code = error.code().unwrap_or_default();
    match &*code {
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Class::Conflict,
        // Too many connections, starting up.
        "53300" | "57P03" => Class::Refused,
        // Shutdown, crash, dropped database, idle timeouts.
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" | "25P04" => Class::Broken,
        // Connection exceptions and protocol violations.
        _ if code.starts_with("08") => Class::Broken,
        _ => Class::Statement,
    }
}

fn judge_word(word: Word<'_>) -> Dirt {
    match word.text {
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release"
            if word.first =>
        {
            Dirt::TRANSACTION
        }
        "prepare" | "deallocate" | "discard" if word.first => {
            Dirt::PREPARED | Dirt::STATE | Dirt::TRANSACTION
        }
        // A block of code can change anything but the transaction.
        "do" | "call" if word.first => Dirt::SESSION,
        "set" | "reset" | "listen" | "unlisten" | "declare" | "load" if word.first => Dirt::STATE,
        "temp" | "temporary" | "pg_temp" | "set_config" | "setseed" => Dirt::STATE,
        text if is_lock(text) => Dirt::LOCKS,
        text if text.starts_with("dblink") => Dirt::STATE,
        _ => Dirt::NONE,
    }
}

/// Returns whether this function takes a lock of the session. Locks of the transaction
/// (`pg_advisory_xact_lock`) end with it.
fn is_lock(word: &str) -> bool {
    let word = word
        .strip_prefix("pg_try_")
        .or_else(|| word.strip_prefix("pg_"));
    word.is_some_and(|word| word.starts_with("advisory_lock"))
}
