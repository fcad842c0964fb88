//! PostgreSQL.

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Error, Executor, Postgres, Row};

use crate::builder::{BuildError, Credentials, Draft};
use crate::dialect::{Dialect, statements};
use crate::error::{self, Class};
use crate::scan::{Dirt, Word, words};
use crate::session::Flight;
use crate::template::Template;
use crate::transaction::TransactionOptions;

/// `DISCARD ALL` without its `DEALLOCATE ALL`: the driver goes on using what it prepared.
const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

statements!(Postgres);

impl Dialect for Postgres {
    const PROBE: &'static str = "SELECT 1";

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
            // PgBouncer refuses who asks for this, unless it is told not to.
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

    /// The number of the backend. The driver keeps it and its key to itself, so the server is asked.
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

    /// The driver counts the answers that it has not read, so that what is left can be read to its end. It does that without a pause,
    /// so the server is first told to stop. The request is done before the next statement is sent, so that it cannot hit that.
    async fn settle(
        connection: &mut PgConnection,
        flight: Flight,
        brake: &Option<i32>,
        template: &Template<Self>,
        care: bool,
    ) -> Result<(), Error> {
        match brake {
            // Between two rows all is well, and the rest belongs to a transaction that goes on.
            _ if care && flight == Flight::Halfway => {}
            Some(backend) => cancel(template, *backend).await?,
            None => {
                return Err(error::lost(
                    "an operation was dropped, and may not be cancelled",
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

/// Are the prepared statements of the session those of the driver, and no others?
async fn knows_its_statements(connection: &mut PgConnection) -> Result<bool, Error> {
    let sql = "SELECT count(*) FILTER (WHERE from_sql), count(*) FROM pg_prepared_statements";
    // Not prepared, so that it is not one of them.
    let row = connection.fetch_one(sqlx::raw_sql(sql)).await?;
    let (by_sql, all): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    Ok(by_sql == 0 && usize::try_from(all) == Ok(connection.cached_statements_size()))
}

/// Reads to the end of all answers. Errors among them belong to what was dropped.
async fn drain(connection: &mut PgConnection) -> Result<(), Error> {
    loop {
        match connection.flush().await {
            Ok(()) => return Ok(()),
            Err(error) if Postgres::classify(&error).poisons() => return Err(error),
            Err(_) => {}
        }
    }
}

/// Cancels what runs on `backend`, over a connection of its own that ends when nobody else needs it.
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
    // Whoever came meanwhile has the lock by now, and closes it in turn.
    let spare = template.canceller.try_lock().ok();
    if let Some(connection) = spare.and_then(|mut canceller| canceller.take()) {
        let _ = connection.close().await;
    }
    Ok(())
}

/// Somebody's turn with the connection to cancel by. One that is dropped while it waits must not leave the connection behind.
struct Turn<'a>(&'a Template<Postgres>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Held: whoever holds it has a turn too, and is the one to end it.
        if let Ok(mut canceller) = self.0.canceller.try_lock() {
            *canceller = None;
        }
    }
}

fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    let code = error.code().unwrap_or_default();
    match &*code {
        // Serialization failure, deadlock, lock not available, statement that lost against a schema change.
        "40001" | "40P01" | "55P03" => Class::Conflict,
        // Too many connections, starting up, out of memory, disk full.
        "53300" | "57P03" => Class::Refused,
        // Shut down, crash, dropped database, idle timeouts; and whatever says that the connection or the protocol is wrong.
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" | "25P04" => Class::Broken,
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
        // A block of code can do anything but begin or end a transaction.
        "do" | "call" if word.first => Dirt::SESSION,
        "set" | "reset" | "listen" | "unlisten" | "declare" | "load" if word.first => Dirt::STATE,
        "temp" | "temporary" | "pg_temp" | "set_config" | "setseed" => Dirt::STATE,
        text if is_lock(text) => Dirt::LOCKS,
        text if text.starts_with("dblink") => Dirt::STATE,
        _ => Dirt::NONE,
    }
}

/// Those of the transaction (`pg_advisory_xact_lock`) end with it.
fn is_lock(word: &str) -> bool {
    let word = word
        .strip_prefix("pg_try_")
        .or_else(|| word.strip_prefix("pg_"));
    word.is_some_and(|word| word.starts_with("advisory_lock"))
}
