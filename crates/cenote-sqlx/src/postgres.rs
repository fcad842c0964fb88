//! The dialect of PostgreSQL.

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError};
use sqlx::{Connection, Error, Executor, Postgres, Row};

use crate::build_error::BuildError;
use crate::builder::Draft;
use crate::credentials::Credentials;
use crate::dialect::{Dialect, statements};
use crate::dirt::Dirt;
use crate::error::{self, Class};
use crate::lexer::Language;
use crate::session::Progress;
use crate::template::Template;
use crate::transaction::TransactionOptions;
use crate::url;

macro_rules! reset {
    ($more:literal) => {
        concat!(
            "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; ",
            "SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES",
            $more
        )
    };
}

/// `DISCARD ALL` without its `DEALLOCATE ALL`, because the driver keeps its prepared statements.
const RESET: &str = reset!("");

/// Also forgets a replication origin. Most users may not even ask for one. The right to do so is
/// checked when an expression is run, so each has a statement of its own.
const RESET_ALL: &str = reset!(
    "; DO $$ BEGIN IF has_function_privilege('pg_replication_origin_session_reset()', 'EXECUTE') \
     AND has_function_privilege('pg_replication_origin_session_is_setup()', 'EXECUTE') \
     THEN IF pg_replication_origin_session_is_setup() \
     THEN PERFORM pg_replication_origin_session_reset(); END IF; END IF; END $$"
);

statements!(Postgres);

impl Dialect for Postgres {
    const LANGUAGE: Language = Language::Postgres;
    const PROBE: &'static str = "SELECT 1";
    const FAILED_COMMIT_ENDS: bool = true;
    const HEALS: bool = true;

    fn classify(error: &Error) -> Class {
        error::classify_by(error, judge)
    }

    fn is_stale(error: &Error) -> bool {
        let error = error.as_database_error();
        let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        // The text of the error is translated, and its code has other meanings.
        error.is_some_and(|error| error.routine() == Some("RevalidateCachedQuery"))
    }

    /// The server accepts a savepoint only in a transaction.
    async fn is_open(connection: &mut PgConnection) -> Result<bool, Error> {
        let Err(error) = connection.execute("SAVEPOINT cenote_asks").await else {
            let released = connection.execute("RELEASE SAVEPOINT cenote_asks").await;
            return released.map(|_| true);
        };
        match error
            .as_database_error()
            .and_then(DatabaseError::code)
            .as_deref()
        {
            Some("25P01") => Ok(false),
            // It has failed.
            Some("25P02") => Ok(true),
            _ => Err(error),
        }
    }

    const PARAMETERS: &'static [&'static str] = &[
        "application_name",
        "dbname",
        "host",
        "hostaddr",
        "options",
        "password",
        "port",
        "ssl-ca",
        "ssl-cert",
        "ssl-key",
        "ssl-mode",
        "ssl-root-cert",
        "sslcert",
        "sslkey",
        "sslmode",
        "sslrootcert",
        "statement-cache-capacity",
        "user",
    ];

    /// A proxy that lends server connections refuses a parameter that it cannot keep.
    fn explain(error: Error) -> Error {
        let refused = error.as_database_error();
        if refused.is_some_and(|error| error.message().contains("extra_float_digits")) {
            return Error::Configuration(Box::from(format!(
                "{error}: behind a proxy like PgBouncer call `behind_transaction_pooler()` on the builder"
            )));
        }
        error
    }

    fn template(
        options: PgConnectOptions,
        draft: &mut Draft,
    ) -> Result<PgConnectOptions, BuildError> {
        let options = match url::bare_host(options.get_host()) {
            Some(host) => options.host(&host),
            None => options,
        };
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
        let reset = match dirt == Dirt::ANY {
            true => RESET_ALL,
            false => RESET,
        };
        connection.execute(reset).await.map(drop)
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
        } else if options.read_write {
            sql.push_str(" READ WRITE");
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

pub(crate) fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    let code = error.code().unwrap_or_default();
    match &*code {
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Class::Conflict,
        // Too many connections, starting up.
        "53300" | "57P03" => Class::Refused,
        // Wrong password, not allowed to connect, unknown database.
        "28P01" | "28000" | "3D000" => Class::Denied,
        // Shutdown, crash, dropped database, idle timeouts.
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" | "25P04" => Class::Broken,
        // Connection exceptions and protocol violations.
        _ if code.starts_with("08") => Class::Broken,
        _ => Class::Statement,
    }
}
