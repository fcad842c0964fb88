//! The dialect of MySQL and MariaDB.

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{Connection, Error, Executor, MySql};

use crate::build_error::BuildError;
use crate::builder::Draft;
use crate::credentials::Credentials;
use crate::dialect::{Dialect, statements};
use crate::dirt::Dirt;
use crate::error::{self, Class, lost};
use crate::lexer::Language;
use crate::session::Progress;
use crate::template::Template;
use crate::transaction::TransactionOptions;
use crate::url;

/// Errors: the server has no such variable, and a transaction is open.
const UNKNOWN_VARIABLE: u16 = 1193;
const IN_TRANSACTION: u16 = 1568;

statements!(MySql);

impl Dialect for MySql {
    const LANGUAGE: Language = Language::MySql;
    const PROBE: &'static str = "DO 0";

    fn classify(error: &Error) -> Class {
        error::classify_by(error, judge)
    }

    /// A deadlock rolls the whole transaction of its victim back, and the next statement would be
    /// committed by itself.
    fn gives_up(error: &Error) -> bool {
        let number = error.as_database_error().and_then(number_of);
        number == Some(1213)
    }

    /// MariaDB has a variable for it. MySQL refuses to change a transaction that is open.
    async fn is_open(connection: &mut MySqlConnection) -> Result<bool, Error> {
        let asked = sqlx::query_scalar::<_, i64>("SELECT CAST(@@in_transaction AS SIGNED)");
        let error = match asked.persistent(false).fetch_one(&mut *connection).await {
            Ok(open) => return Ok(open != 0),
            Err(error) => error,
        };
        if error.as_database_error().and_then(number_of) != Some(UNKNOWN_VARIABLE) {
            return Err(error);
        }
        let refused = connection.execute("SET TRANSACTION READ WRITE").await;
        match refused {
            Ok(_) => Ok(false),
            Err(Error::Database(error)) if number_of(&*error) == Some(IN_TRANSACTION) => Ok(true),
            Err(error) => Err(error),
        }
    }

    const PARAMETERS: &'static [&'static str] = &[
        "charset",
        "collation",
        "socket",
        "ssl-ca",
        "ssl-cert",
        "ssl-key",
        "ssl-mode",
        "sslca",
        "sslcert",
        "sslkey",
        "sslmode",
        "statement-cache-capacity",
        "time-zone",
        "timezone",
    ];

    fn template(
        options: MySqlConnectOptions,
        _: &mut Draft,
    ) -> Result<MySqlConnectOptions, BuildError> {
        Ok(match url::bare_host(options.get_host()) {
            Some(host) => options.host(&host),
            None => options,
        })
    }

    fn with_credentials(
        options: MySqlConnectOptions,
        credentials: &Credentials,
    ) -> Option<MySqlConnectOptions> {
        let options = options.username(credentials.user());
        Some(match credentials.password() {
            Some(password) => options.password(password),
            None => options,
        })
    }

    type Brake = ();

    async fn brake(_: &mut MySqlConnection, _: &Template<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Between two rows the driver can read the rest. After a drop within a packet it cannot.
    async fn settle(
        connection: &mut MySqlConnection,
        progress: Progress,
        (): &(),
        _: &Template<Self>,
        _: bool,
    ) -> Result<(), Error> {
        if progress == Progress::Running {
            return Err(lost(
                "an operation was dropped before its end: its connection is closed",
            ));
        }
        connection.flush().await
    }

    /// sqlx does not offer the reset of the protocol. SQL can release locks; any other change
    /// closes the connection.
    async fn reset(connection: &mut MySqlConnection, dirt: Dirt) -> Result<(), Error> {
        if dirt.has(Dirt::STATE | Dirt::PREPARED) {
            return Err(lost("the session was changed, and it cannot be reset"));
        }
        connection.execute("UNLOCK TABLES").await?;
        let release = "DO RELEASE_ALL_LOCKS(), LAST_INSERT_ID(0)";
        connection.execute(release).await.map(drop)
    }

    fn begin(options: &TransactionOptions) -> Option<String> {
        if *options == TransactionOptions::default() {
            return None;
        }
        let mut sql = String::new();
        if let Some(isolation) = options.isolation {
            // Holds for the next transaction only.
            sql.push_str("SET TRANSACTION ISOLATION LEVEL ");
            sql.push_str(isolation.sql());
            sql.push_str("; ");
        }
        sql.push_str("START TRANSACTION");
        if options.read_only {
            sql.push_str(" READ ONLY");
        } else if options.read_write {
            sql.push_str(" READ WRITE");
        }
        Some(sql)
    }
}

fn number_of(error: &(dyn DatabaseError + 'static)) -> Option<u16> {
    let error = error.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

pub(crate) fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    match number_of(error) {
        // Lock wait timeout, deadlock, changed since last read.
        Some(1205 | 1213 | 1020) => Class::Conflict,
        // Too many connections, in total or of one user.
        Some(1040 | 1203 | 1226) => Class::Refused,
        // Access denied (to the server, to the database), unknown database, host not allowed.
        Some(1044 | 1045 | 1049 | 1130 | 1698) => Class::Denied,
        // Shutdown, killed, packets out of order or unreadable, idle for too long, connection lost.
        Some(1053 | 1077 | 1079 | 1153..=1161 | 1184 | 1927 | 2006 | 2013 | 4031) | None => {
            Class::Broken
        }
        Some(_) => Class::Statement,
    }
}
